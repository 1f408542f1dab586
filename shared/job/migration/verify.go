package migration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// pauses come before each further look at what differs: an event that is being
// written lies in one schema before it lies in the other.
var pauses = []time.Duration{0, 200 * time.Millisecond, time.Second, 3 * time.Second}

const (
	// chunkRows and chunkBytes bound what is read of one schema at a time.
	chunkRows  = 250
	chunkBytes = 1 << 20
	// checkRows are compared between two checkpoints.
	checkRows = 5_000
	// maxSuspects differ at most before they are looked at again.
	maxSuspects = 500
	// maxFaulty ends a shard: of so many differences it does not matter how many
	// more there are.
	maxFaulty = 1_000
	// sampled users of each shard have their profiles computed from both schemas.
	sampled = 20
	// tolerance of two scores, relative: they are sums in different orders.
	tolerance = 1e-9
)

// verify compares a stretch of the two logs, then profiles of some of its users.
func (s *sweep) verify(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	v := &verification{
		sweep: s, decoder: newDecoder(), users: sample{rnd: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))},
		one: s.stream(ctx, s.from), other: s.stream(ctx, s.to), user: s.part.Within(),
	}
	err := v.merge(ctx)
	if err == nil {
		err = v.profiles(ctx)
	}
	return s.ended(err)
}

// stream reads a stretch of one schema, some rows ahead.
func (s *sweep) stream(ctx context.Context, n schema.Name) *stream {
	st := &stream{chunks: make(chan []store.Entry, 2)}
	go func() {
		defer close(st.chunks)
		var chunk []store.Entry
		size := 0
		send := func() error {
			select {
			case st.chunks <- chunk:
			case <-ctx.Done():
				return ctx.Err()
			}
			chunk, size = nil, 0
			return nil
		}
		st.err = s.log.Scan(ctx, n, s.part, s.since, func(e store.Entry) error {
			chunk = append(chunk, e)
			if size += e.Size() + len(e.Original); len(chunk) < chunkRows && size < chunkBytes {
				return nil
			}
			return send()
		})
		if st.err == nil && len(chunk) > 0 {
			st.err = send()
		}
	}()
	return st
}

// stream is the rows of one schema, in order.
type stream struct {
	chunks chan []store.Entry
	chunk  []store.Entry
	err    error // once chunks is closed
}

// head is the next row; nil at the end.
func (st *stream) head() (*store.Entry, error) {
	if len(st.chunk) == 0 {
		if st.chunk = <-st.chunks; len(st.chunk) == 0 {
			return nil, st.err
		}
	}
	return &st.chunk[0], nil
}

func (st *stream) pop() { st.chunk = st.chunk[1:] }

// verification is one comparison of a stretch.
type verification struct {
	*sweep
	decoder    *decoder
	one, other *stream
	suspects   []string // keys of rows that were not found the same
	rows       int      // since the last checkpoint
	user       string
	users      sample
}

// merge walks both streams side by side.
func (v *verification) merge(ctx context.Context) error {
	for {
		a, err := v.one.head()
		if err != nil {
			return err
		}
		b, err := v.other.head()
		if err != nil {
			return err
		}
		var row *store.Entry
		switch {
		case a == nil && b == nil:
			return v.settle(ctx)
		case b == nil, a != nil && a.Compare(*b) < 0:
			row = a
			v.suspects = append(v.suspects, a.Key())
			v.one.pop()
		case a == nil, b.Compare(*a) < 0:
			row = b
			v.suspects = append(v.suspects, b.Key())
			v.other.pop()
		default:
			row = a
			if v.unlike(a, b) != "" {
				v.suspects = append(v.suspects, a.Key())
			}
			v.one.pop()
			v.other.pop()
		}
		if err := v.passed(ctx, row); err != nil {
			return err
		}
	}
}

// passed counts a row that was compared.
func (v *verification) passed(ctx context.Context, row *store.Entry) error {
	v.result.Events++
	if row.Fault == nil && row.User != v.user {
		v.user = row.User
		v.result.Visited++
		v.users.add(row.User)
	}
	if v.rows++; v.rows < checkRows && len(v.suspects) < maxSuspects {
		return nil
	}
	if err := v.settle(ctx); err != nil {
		return err
	}
	if v.rows = 0; !v.now().Before(v.until) { // the task that goes on chooses anew
		if err := v.profiles(ctx); err != nil {
			return err
		}
	}
	return v.reached(row.After())
}

// unlike says how two rows of one event differ; "" if they do not.
func (v *verification) unlike(a, b *store.Entry) string {
	x, err := v.decoder.event(*a)
	if err != nil {
		return fmt.Sprintf("%s does not decode: %v", v.from, err)
	}
	y, err := v.decoder.event(*b)
	if err != nil {
		return fmt.Sprintf("%s does not decode: %v", v.to, err)
	}
	if !x.Same(&y) {
		return "the events differ"
	}
	return ""
}

// settle looks at suspects again, several times: those that stay unlike are
// faults.
func (v *verification) settle(ctx context.Context) error {
	found := map[string]string{}
	for _, pause := range v.pauses {
		if len(v.suspects) == 0 {
			return nil
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
		var err error
		if found, err = v.again(ctx); err != nil {
			return err
		}
		v.suspects = slices.DeleteFunc(v.suspects, func(key string) bool { return found[key] == "" })
	}
	for _, key := range v.suspects {
		what, err := v.mend(ctx, key)
		if err != nil {
			return err
		}
		v.fault(&v.result, "%s: %s, %s", key, found[key], what)
	}
	v.suspects = nil
	if v.result.Faulty >= maxFaulty {
		return fmt.Errorf("%w: %d rows or more are not the same in both schemas, first %s", job.ErrFailed, v.result.Faulty, strings.Join(v.result.Faults, "; "))
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// again reads the suspects from both schemas and says of each how it differs. A
// deleted event that lies in the new schema alone is removed there: the purge came
// by before its copy did.
func (v *verification) again(ctx context.Context) (map[string]string, error) {
	rows := map[schema.Name]map[string]store.Entry{}
	var users []string
	for _, n := range []schema.Name{v.from, v.to} {
		rows[n] = map[string]store.Entry{}
		err := v.log.Entries(ctx, n, v.suspects, func(e store.Entry) error {
			rows[n][e.Key()] = e
			users = append(users, e.User)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(users) == 0 {
		return nil, nil
	}
	gone, err := v.deleted(ctx, slices.MinFunc(users, store.UserOrder), slices.MaxFunc(users, store.UserOrder))
	if err != nil {
		return nil, err
	}
	found, buried := map[string]string{}, []string(nil)
	for _, key := range v.suspects {
		a, inFrom := rows[v.from][key]
		b, inTo := rows[v.to][key]
		switch {
		case inFrom && inTo:
			found[key] = v.unlike(&a, &b)
		case inFrom && !gone.covers(&store.LogEvent{User: a.User, Time: a.Time}):
			found[key] = fmt.Sprintf("only in %s", v.from)
			if _, err := v.decoder.event(a); err != nil {
				found[key] = fmt.Sprintf("only in %s, where it does not decode: %v", v.from, err)
			}
		case inTo && gone.covers(&store.LogEvent{User: b.User, Time: b.Time}):
			buried = append(buried, key)
		case inTo:
			found[key] = fmt.Sprintf("only in %s", v.to)
		}
	}
	return found, v.log.DeleteEntries(ctx, v.to, buried)
}

// maxMends bounds how often a row is mended because it was written meanwhile.
const maxMends = 10

// mend makes the row of the new schema what that of the old one is. Two deliveries
// of an event with different filters may have come to the two schemas in different
// orders, which no backfill can mend, since copies stand behind what was written.
// Whoever writes an event writes it to the old schema first: so what he wrote to
// the new one before it was mended is seen when the old one is read again; and who
// did it the other way round, before an undone cutover, writes it again (see package
// profile).
func (v *verification) mend(ctx context.Context, key string) (string, error) {
	var last *store.LogEvent
	for n := range maxMends {
		row, err := v.read(ctx, key)
		if err != nil {
			return "", err
		}
		var is *store.LogEvent
		if row != nil {
			ev, err := v.decoder.event(*row)
			if err != nil {
				return "which is left as it is", nil
			}
			is = &ev
		}
		if n > 0 && (is == nil && last == nil || is != nil && last != nil && is.Same(last)) {
			v.result.Changed++
			return "mended now", nil
		}
		if err := v.fence(ctx); err != nil {
			return "", err
		}
		if is == nil {
			err = v.log.DeleteEntries(ctx, v.to, []string{key})
		} else {
			err = v.log.Replace(ctx, v.to, []store.LogEvent{*is})
		}
		if err != nil {
			return "", err
		}
		last = is
	}
	return "and written again all the time", nil
}

// read reads a row of the old schema; nil if it is not there.
func (v *verification) read(ctx context.Context, key string) (*store.Entry, error) {
	var row *store.Entry
	err := v.log.Entries(ctx, v.from, []string{key}, func(e store.Entry) error {
		row = &e
		return nil
	})
	return row, err
}
