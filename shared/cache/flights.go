package cache

import (
	"context"
	"time"

	"github.com/affinityengine/affinity/shared/deadline"
)

// pending is the value of a key whose read has begun. The entry is set when the read is done.
type pending[V any] struct {
	*read
	entry Entry[V]
}

// read is one call of a Loader.
type read struct {
	began time.Duration
	guess bool
	done  chan struct{} // closed when the entries and err are set
	err   error
}

// join returns the pending values of the wanted keys, nil where a value has come since. It
// begins one read of the keys that no other call reads.
func (c *reads[K, V]) join(ctx context.Context, a Ask[K, V], j judgement,
	found []*Entry[V]) (mine *read, all []*pending[V], err error) {
	all = make([]*pending[V], len(j.wanted))
	var keys []K
	var own, made []pending[V]
	guess := a.Guess && j.unknown
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now() // another call may have begun to read since this one looked
	for n, i := range j.wanted {
		k := a.Keys[i]
		// A read that has begun long ago may not have seen a change that this call must see.
		if p := c.running[k]; p != nil && c.fresh(now-p.began) {
			all[n] = p
			continue
		}
		if e := c.known(k); e != nil && e != found[i] && c.fresh(now-e.began) && (a.Usable == nil || a.Usable(e.Value)) {
			found[i] = e
			continue
		}
		if guess && c.guesses >= c.Guesses && c.Guesses > 0 {
			return nil, nil, errBusy
		}
		if mine == nil {
			mine, made = &read{began: now, guess: guess, done: make(chan struct{})}, make([]pending[V], len(j.wanted)-n)
		}
		if c.Own != nil {
			k = c.Own(k)
		}
		own = made[:len(keys)+1]
		p := &own[len(keys)]
		p.read = mine
		c.running[k], all[n], keys = p, p, append(keys, k)
	}
	if mine != nil {
		if guess {
			c.guesses++
		}
		go c.load(context.WithoutCancel(ctx), mine, keys, own, a.Load)
	}
	return mine, all, nil
}

// wait waits for pending values and sets their entries.
func (c *reads[K, V]) wait(ctx context.Context, a Ask[K, V], j judgement, all []*pending[V], found []*Entry[V],
	mine *read) (own bool, err error) {
	var waited <-chan time.Time
	if !j.missing {
		timer := time.NewTimer(c.Wait)
		defer timer.Stop()
		waited = timer.C
	}
	own = true
	var late error
	var last *read
	for n, p := range all {
		if p == nil {
			continue
		}
		if p.read != last && late == nil {
			select {
			case <-p.done:
			case <-waited:
				late = errSlow
			case <-a.Late:
				late = errSlow
			case <-ctx.Done():
				late = ctx.Err()
			}
			last = p.read
		}
		select {
		case <-p.done:
		default:
			continue
		}
		if p.err != nil {
			own, err = own && p.read == mine, p.err
			continue
		}
		found[j.wanted[n]] = &p.entry
	}
	if late != nil {
		return true, late
	}
	return own, err
}

// load runs one read and keeps what it finds.
func (c *reads[K, V]) load(ctx context.Context, r *read, keys []K, own []pending[V], load Loader[K, V]) {
	ctx, cancel := deadline.Detach(ctx, readTimeout)
	defer cancel()
	values, err := load(ctx, keys)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.guess {
		c.guesses--
	}
	for i, k := range keys {
		own[i].entry = Entry[V]{values[k], r.began}
		if c.running[k] != &own[i] { // a change or a later read has taken its place
			continue
		}
		delete(c.running, k) // before a call sees an error: its retry must read again
		if err == nil {
			c.put(k, own[i].entry)
		}
	}
	r.err = err
	close(r.done)
}

// put keeps an entry.
func (c *reads[K, V]) put(key K, e Entry[V]) {
	switch {
	case c.Nothing == nil:
		c.kept.put(key, e)
	case c.Nothing(e.Value):
		c.absent.Set(key, &e)
		c.kept.remove(key)
	default:
		c.kept.put(key, e)
		c.absent.Delete(key)
	}
}

// readAhead reads the entries that are due, unless another such read is under way. What it
// cannot read stays as it is.
func (c *reads[K, V]) readAhead(ctx context.Context, a Ask[K, V], found []*Entry[V]) {
	if c.slow.paused(a.Group) || !c.ahead.CompareAndSwap(false, true) {
		return
	}
	j := judgement{now: c.now()}
	for i, e := range found {
		if e != nil && c.isDue(j.now-e.began) {
			j.wanted = append(j.wanted, i)
		}
	}
	mine, _, err := c.join(ctx, a, j, found)
	if err != nil || mine == nil {
		c.ahead.Store(false)
		return
	}
	go func() {
		<-mine.done
		c.note(ctx, a.Group, mine.err)
		c.ahead.Store(false)
	}()
}
