package migration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/googleapis/gax-go/v2"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// pauses come before each look at rows that differ: a writer writes an event
// first in one schema, then in the other.
var pauses = []time.Duration{0, 200 * time.Millisecond, time.Second, 3 * time.Second}

const (
	// chunkRows and chunkBytes bound the rows of a chunk.
	chunkRows  = 250
	chunkBytes = 1 << 20
	// checkRows is how many rows a task compares between two checkpoints.
	checkRows = 5_000
	// maxSuspects bounds how many differing rows recheck reads together.
	maxSuspects = 500
	// maxDifferent is the number of differences after which a shard fails: an
	// exact count would not help the operator.
	maxDifferent = 1_000
	// sampled is how many users of each task have their profiles compared.
	sampled = 20
	// tolerance is the relative difference that another order of addition may
	// cause in a score.
	tolerance = 1e-9
)

// verify compares a range of the log in both schemas, and the profiles of some
// of its users.
func (p *pass) verify(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	v := &verification{
		pass: p, decoder: store.NewLogDecoder(),
		users:   store.Reservoir{Size: sampled, Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))},
		oldRows: p.stream(ctx, p.from), newRows: p.stream(ctx, p.to), user: p.rows.Within(),
	}
	err := v.merge(ctx)
	if err == nil {
		err = v.compareProfiles(ctx)
	}
	v.result.Counts = job.Count(v.counts)
	return p.ended(err)
}

// stream reads the rows of a pass in one schema, some chunks ahead.
func (p *pass) stream(ctx context.Context, n schema.Name) *stream {
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
		st.err = p.log.Scan(ctx, n, p.rows, p.params.SinceMillis(), func(e store.Entry) error {
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

// stream holds the rows of one schema, in order.
type stream struct {
	chunks chan []store.Entry
	chunk  []store.Entry
	err    error // valid once chunks is closed
}

// head returns the next row; nil at the end.
func (st *stream) head() (*store.Entry, error) {
	if len(st.chunk) == 0 {
		if st.chunk = <-st.chunks; len(st.chunk) == 0 {
			return nil, st.err
		}
	}
	return &st.chunk[0], nil
}

func (st *stream) pop() { st.chunk = st.chunk[1:] }

// verification is one comparison of a range.
type verification struct {
	*pass
	decoder          *store.LogDecoder
	oldRows, newRows *stream
	counts           Counts
	suspects         []string // keys of rows that differed at the first look
	compared         int      // rows since the last checkpoint
	user             string   // of the last row
	users            store.Reservoir
}

// addFault counts a difference, and lists it if the list has room.
func (v *verification) addFault(format string, args ...any) {
	v.counts.Faulty++
	v.result.Faults = addFault(v.result.Faults, format, args...)
}

// merge walks both streams in parallel and compares rows of the same key.
func (v *verification) merge(ctx context.Context) error {
	for {
		a, err := v.oldRows.head()
		if err != nil {
			return err
		}
		b, err := v.newRows.head()
		if err != nil {
			return err
		}
		var row *store.Entry
		switch {
		case a == nil && b == nil:
			return v.recheck(ctx)
		case b == nil, a != nil && a.Compare(*b) < 0:
			row = a
			v.suspects = append(v.suspects, a.Key())
			v.oldRows.pop()
		case a == nil, b.Compare(*a) < 0:
			row = b
			v.suspects = append(v.suspects, b.Key())
			v.newRows.pop()
		default:
			row = a
			if v.diff(a, b) != "" {
				v.suspects = append(v.suspects, a.Key())
			}
			v.oldRows.pop()
			v.newRows.pop()
		}
		if err := v.passed(ctx, row); err != nil {
			return err
		}
	}
}

// passed counts a row that was compared.
func (v *verification) passed(ctx context.Context, row *store.Entry) error {
	v.counts.Rows++
	if row.Fault == nil && row.User != v.user {
		v.user = row.User
		v.counts.Users++
		v.users.Add(row.User)
	}
	if v.compared++; v.compared < checkRows && len(v.suspects) < maxSuspects {
		return nil
	}
	if err := v.recheck(ctx); err != nil {
		return err
	}
	if v.compared = 0; !v.now().Before(v.until) { // the next task has a sample of its own
		if err := v.compareProfiles(ctx); err != nil {
			return err
		}
	}
	return v.reached(row.After(), job.Count(v.counts))
}

// diff describes how the two rows of an event differ; "" if they are the same.
func (v *verification) diff(a, b *store.Entry) string {
	x, err := v.decoder.Written(*a)
	if err != nil {
		return fmt.Sprintf("%s does not decode: %v", v.from, err)
	}
	y, err := v.decoder.Written(*b)
	if err != nil {
		return fmt.Sprintf("%s does not decode: %v", v.to, err)
	}
	if !x.Same(&y) {
		return "the events differ"
	}
	return ""
}

// recheck reads the suspects several times. Suspects that still differ at the
// end are faults; recheck repairs them.
func (v *verification) recheck(ctx context.Context) error {
	found := map[string]string{}
	for _, pause := range v.pauses {
		if len(v.suspects) == 0 {
			return nil
		}
		if err := gax.Sleep(ctx, pause); err != nil {
			return err
		}
		var err error
		if found, err = v.reread(ctx); err != nil {
			return err
		}
		v.suspects = slices.DeleteFunc(v.suspects, func(key string) bool { return found[key] == "" })
	}
	for _, key := range v.suspects {
		outcome, err := v.repair(ctx, key)
		if err != nil {
			return err
		}
		v.addFault("%s: %s, %s", key, found[key], outcome)
	}
	v.suspects = nil
	if v.counts.Faulty >= maxDifferent {
		v.result.Counts = job.Count(v.counts)
		return fmt.Errorf("%w: at least %d rows are not the same in both schemas, first %s",
			job.ErrFailed, v.counts.Faulty, strings.Join(v.result.Faults, "; "))
	}
	return nil
}

// reread reads the suspects from both schemas and describes how each differs.
// It removes deleted events that are only in the new schema: the purge passed
// before their copies existed.
func (v *verification) reread(ctx context.Context) (map[string]string, error) {
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
	stones, err := v.tombstones(ctx, slices.MinFunc(users, store.UserOrder), slices.MaxFunc(users, store.UserOrder))
	if err != nil {
		return nil, err
	}
	found, deleted := map[string]string{}, []store.LogEvent(nil)
	for _, key := range v.suspects {
		a, inFrom := rows[v.from][key]
		b, inTo := rows[v.to][key]
		switch {
		case inFrom && inTo:
			found[key] = v.diff(&a, &b)
		case inFrom && !stones.cover(a.Written()):
			found[key] = fmt.Sprintf("only in %s", v.from)
			if _, err := v.decoder.Written(a); err != nil {
				found[key] = fmt.Sprintf("only in %s, where it does not decode: %v", v.from, err)
			}
		case inTo && stones.cover(b.Written()):
			deleted = append(deleted, *b.Written())
		case inTo:
			found[key] = fmt.Sprintf("only in %s", v.to)
		}
	}
	return found, v.log.DropExcludedFrom(ctx, v.to, deleted, stones.of)
}

// maxRepairs bounds the attempts to repair a row that writers keep changing.
const maxRepairs = 10

// repair overwrites the new schema's row with the old schema's, and describes
// the outcome. Two deliveries of an event with different filters can reach the
// two schemas in opposite orders. A backfill cannot repair that, because its
// copies have older cell times than what writers write. A live writer always
// writes the old schema first, so a second read of the old row reveals any
// write that raced with the repair; writers from before an undone cutover write
// their event a second time (see package profile).
func (v *verification) repair(ctx context.Context, key string) (string, error) {
	var written *store.LogEvent
	for n := range maxRepairs {
		row, err := v.read(ctx, key)
		if err != nil {
			return "", err
		}
		var current *store.LogEvent
		if row != nil {
			ev, err := v.decoder.Written(*row)
			if err != nil {
				return "which is left unchanged", nil
			}
			current = &ev
		}
		if n > 0 && (current == nil && written == nil || current != nil && written != nil && current.Same(written)) {
			v.counts.Changed++
			return "now repaired", nil
		}
		if err := v.checkCurrent(ctx); err != nil {
			return "", err
		}
		if current == nil {
			err = v.log.DeleteEntries(ctx, v.to, []string{key})
		} else {
			err = v.log.Replace(ctx, v.to, []store.LogEvent{*current})
		}
		if _, ok := errors.AsType[store.RefusedEvents](err); ok {
			return fmt.Sprintf("not repaired: %v", err), nil
		}
		if err != nil {
			return "", err
		}
		written = current
	}
	return "not repaired: writers keep changing it", nil
}

// read returns a row of the old schema; nil if it does not exist.
func (v *verification) read(ctx context.Context, key string) (*store.Entry, error) {
	var row *store.Entry
	err := v.log.Entries(ctx, v.from, []string{key}, func(e store.Entry) error {
		row = &e
		return nil
	})
	return row, err
}
