package cache

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Forever is an age that no value reaches.
	Forever = time.Duration(math.MaxInt64)
	// readTimeout ends a read that the store does not answer. A read continues when the call
	// that began it ends, since other calls may wait for it.
	readTimeout = 10 * time.Second
	// keyStrikes is how many reads of a group in a row are slow or fail before calls stop to
	// wait for them.
	keyStrikes = 1
)

// errSlow says that a read has not ended in time. It goes on, and a later call has what it
// reads.
var errSlow = fmt.Errorf("the read takes too long: %w", context.DeadlineExceeded)

// errBusy is the answer to a guess beyond Options.Guesses.
var errBusy error = busyError{}

type busyError struct{}

func (busyError) Error() string { return "too many reads of unknown keys at once" }

// Transient says that the read may succeed later.
func (busyError) Transient() bool { return true }

// Options say what a Reads keeps and for how long.
type Options[K comparable, V any] struct {
	// Entries bounds the number of values, or Bytes what they take, by Size: see NewSized.
	Entries, Bytes int
	Size           func(K, V) int
	// Nothing reports whether a value says that there is none for its key. Such values are
	// fresh for AbsentFor (0: for Fresh), and kept apart, Absent of them: so guesses of keys
	// displace nothing that exists. nil: there are no such values.
	Nothing   func(V) bool
	Absent    int
	AbsentFor time.Duration
	// Fresh is how old a value may be that a call gets without waiting. Ages count from the
	// start of a read: so a call that begins this long after a change sees the change.
	Fresh time.Duration
	// Ahead has a value that is used in the last fifth of its time read again, in the
	// background, one read at a time. So nobody waits for what is used all the time.
	Ahead bool
	// Stale is how old a value may be that a call gets when the read of a newer one fails or
	// takes longer than Wait. 0: there are no such values.
	Stale, Wait time.Duration
	// Guesses is how many reads for calls with Guess run at a time. 0: any number.
	Guesses int
	// Own copies a key that belongs to the memory of a request. nil: keys own their texts.
	Own func(K) K
	// Paused learns when the calls of a group stop to wait for newer values, and why. nil:
	// nobody does.
	Paused func(ctx context.Context, group string, err error)
	// Hash makes the Reads keep its values in a table, for calls with very many keys. It drops
	// the oldest values first. nil: in a Map.
	Hash func(K) uint64
	Now  func() time.Time
}

// Loader reads the values of keys. A key that it leaves out has the zero value. It works for
// several calls: its context ends with none of them.
type Loader[K comparable, V any] func(ctx context.Context, keys []K) (map[K]V, error)

// Ask is one call of Get.
type Ask[K comparable, V any] struct {
	Keys []K
	Load Loader[K, V]
	// Group names what is slow or fails together, as a rule the app. While it is, the calls of
	// the group do not wait if they have older values.
	Group string
	// Exact refuses values that are older than Fresh.
	Exact bool
	// Guess says that anybody may have made up the keys.
	Guess bool
	// Usable reports whether a fresh value is as new as the call needs. nil: each is.
	Usable func(V) bool
	// Late is closed when the call must end, whatever it has. nil: when its context ends.
	Late <-chan struct{}
}

// Entry is a value and when the read of it began, counted from the start of its Reads.
type Entry[V any] struct {
	Value V
	began time.Duration
}

// storage keeps entries up to a bound. It is safe for concurrent use.
type storage[K comparable, V any] interface {
	get(K) *Entry[V]
	// all sets the entries of keys, nil where there is none.
	all(keys []K, into []*Entry[V])
	put(K, Entry[V])
	remove(K)
}

// Reads reads values from a store and keeps them. It is safe for concurrent use.
//
// It is an interface because of what a build costs: a package that has a Reads in a struct would
// compile it, and so would each that uses this struct.
type Reads[K comparable, V any] interface {
	// One is Get for one key. It returns an older value, if that may serve, without the error.
	One(ctx context.Context, key K, a Ask[K, V]) (V, error)
	// Get returns the entries of keys, in their order. The error, if there is one, says why
	// some are nil or older than they should be: the others may be used. It is that of ctx if
	// the call has ended.
	Get(ctx context.Context, a Ask[K, V]) ([]*Entry[V], error)
	// Prefetch starts a read of a key, unless its value is there and fresh, or on its way.
	Prefetch(ctx context.Context, key K, a Ask[K, V])
	// Set sets the value of a key, in place of one that is being read.
	Set(key K, value V)
	// Evict makes the next call read a key. A read that is running may have seen the state
	// before a change.
	Evict(key K)
	// Last returns the value of a key that is kept, of any age. It reads nothing.
	Last(key K) (V, bool)
}

type reads[K comparable, V any] struct {
	Options[K, V]
	start  time.Time
	kept   storage[K, V]
	absent Map[K, *Entry[V]] // if Nothing is set
	slow   *Slow
	ahead  atomic.Bool // a read ahead is under way

	mu      sync.Mutex
	running map[K]*pending[V]
	guesses int
}

// NewReads returns a Reads that holds nothing yet.
func NewReads[K comparable, V any](o Options[K, V]) Reads[K, V] { return newReads(o) }

func newReads[K comparable, V any](o Options[K, V]) *reads[K, V] {
	c := &reads[K, V]{Options: o, start: o.Now(), running: map[K]*pending[V]{}, slow: NewSlow(keyStrikes, o.Now)}
	switch size := func(k K, e *Entry[V]) int { return o.Size(k, e.Value) }; {
	case o.Hash != nil:
		c.kept = newTable(o.Bytes, o.Hash, o.Size)
	case o.Size != nil:
		c.kept = entries[K, V]{NewSized(o.Bytes, size)}
	default:
		c.kept = entries[K, V]{New[K, *Entry[V]](o.Entries)}
	}
	if o.Nothing != nil {
		c.absent = New[K, *Entry[V]](o.Absent)
	}
	if o.AbsentFor == 0 {
		c.AbsentFor = o.Fresh
	}
	return c
}

// entries is a Map as a storage.
type entries[K comparable, V any] struct{ m Map[K, *Entry[V]] }

func (s entries[K, V]) get(k K) *Entry[V]   { e, _ := s.m.Get(k); return e }
func (s entries[K, V]) put(k K, e Entry[V]) { s.m.Set(k, &e) }
func (s entries[K, V]) remove(k K)          { s.m.Delete(k) }
func (s entries[K, V]) all(keys []K, into []*Entry[V]) {
	for i, k := range keys {
		into[i] = s.get(k)
	}
}

func (c *reads[K, V]) One(ctx context.Context, key K, a Ask[K, V]) (value V, err error) {
	if err := ctx.Err(); err != nil {
		return value, err
	}
	if e := c.known(key); e != nil && a.Usable == nil {
		if age := c.now() - e.began; c.fresh(age) && !c.isDue(age) {
			return e.Value, nil
		}
	}
	a.Keys = []K{key}
	found, err := c.Get(ctx, a)
	if len(found) == 1 && found[0] != nil {
		return found[0].Value, nil
	}
	return value, err
}

func (c *reads[K, V]) Get(ctx context.Context, a Ask[K, V]) ([]*Entry[V], error) {
	if err := ctx.Err(); err != nil { // a quick read would hide it
		return nil, err
	}
	found, own, err := c.attempt(ctx, a)
	if err != nil && !own {
		// Another call's read has failed, maybe for a reason of that call.
		found, _, err = c.attempt(ctx, a)
	}
	if over := ctx.Err(); over != nil && err != nil {
		return nil, over
	}
	return found, err
}

// attempt is Get. own says that no read of another call has failed.
func (c *reads[K, V]) attempt(ctx context.Context, a Ask[K, V]) (found []*Entry[V], own bool, err error) {
	found = make([]*Entry[V], len(a.Keys))
	c.kept.all(a.Keys, found)
	j := c.judge(a, found)
	if j.due {
		c.readAhead(ctx, a, found)
	}
	if len(j.wanted) == 0 {
		return found, true, nil
	}
	if !j.missing && !c.slow.MayWait(a.Group) {
		return found, true, errSlow
	}
	mine, all, err := c.join(ctx, a, j, found)
	if err != nil {
		return found, true, err
	}
	own, err = c.wait(ctx, a, j, all, found, mine)
	if ctx.Err() == nil || err == nil {
		c.note(ctx, a.Group, err)
	}
	return found, own, err
}

// note notes how a read has ended.
func (c *reads[K, V]) note(ctx context.Context, group string, err error) {
	if c.slow.Note(group, err == nil) && c.Paused != nil {
		c.Paused(ctx, group, err)
	}
}

// judgement says which entries of a call are to be read.
type judgement struct {
	now     time.Duration
	wanted  []int // positions of keys
	missing bool  // some of them have no value that could serve
	unknown bool  // some key is not kept
	due     bool  // some entry should be read ahead
}

// judge judges the entries that are kept. It sets those to nil that are too old to serve.
func (c *reads[K, V]) judge(a Ask[K, V], found []*Entry[V]) judgement {
	j := judgement{now: c.now()}
	for i, e := range found {
		if e == nil {
			if e = c.knownAbsent(j.now, a.Keys[i]); e != nil {
				found[i] = e
				continue
			}
			j.wanted, j.missing, j.unknown = append(j.wanted, i), true, true
			continue
		}
		age := j.now - e.began
		if c.fresh(age) && (a.Usable == nil || a.Usable(e.Value)) {
			j.due = j.due || c.isDue(age)
			continue
		}
		j.wanted = append(j.wanted, i)
		if a.Exact || age >= max(c.Stale, c.Fresh) {
			found[i], j.missing = nil, true
		}
	}
	return j
}

// fresh reports whether an age is less than Fresh. A clock that was set back makes it negative.
func (c *reads[K, V]) fresh(age time.Duration) bool { return within(age, c.Fresh) }

func within(age, most time.Duration) bool { return age >= 0 && age < most }

func (c *reads[K, V]) isDue(age time.Duration) bool { return c.Ahead && age >= c.Fresh-c.Fresh/5 }

func (c *reads[K, V]) now() time.Duration { return c.Now().Sub(c.start) }

// known returns what is kept of a key: its value, or that it has none; nil: nothing.
func (c *reads[K, V]) known(key K) *Entry[V] {
	if e := c.kept.get(key); e != nil {
		return e
	}
	return c.knownAbsent(c.now(), key)
}

func (c *reads[K, V]) knownAbsent(now time.Duration, key K) *Entry[V] {
	if c.Nothing == nil {
		return nil
	}
	if e, ok := c.absent.Get(key); ok && within(now-e.began, c.AbsentFor) {
		return e
	}
	return nil
}

func (c *reads[K, V]) Prefetch(ctx context.Context, key K, a Ask[K, V]) {
	if ctx.Err() != nil {
		return
	}
	a.Keys = []K{key}
	found := []*Entry[V]{c.kept.get(key)}
	if j := c.judge(a, found); len(j.wanted) > 0 {
		_, _, _ = c.join(ctx, a, j, found)
	}
}

func (c *reads[K, V]) Set(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, key)
	c.put(key, Entry[V]{value, c.now()})
}

func (c *reads[K, V]) Evict(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, key)
	c.kept.remove(key)
	if c.Nothing != nil {
		c.absent.Delete(key)
	}
}

func (c *reads[K, V]) Last(key K) (value V, ok bool) {
	if e := c.kept.get(key); e != nil {
		return e.Value, true
	}
	return value, false
}
