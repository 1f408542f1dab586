package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// analysed is a store whose app profile for analysis sees what was written when the test
// lets it.
type analysed struct {
	*testing.T
	*store.Store
	server *storetest.Replicated
	events int
}

func newAnalysed(t *testing.T) *analysed {
	server, _, _ := storetest.NewReplicated(t)
	a := &analysed{T: t, Store: storetest.OpenAnalysis(t, server.Addr), server: server}
	a.pass()
	return a
}

// write writes an event and draws a ticket of its user, as an acknowledged message does.
func (a *analysed) write(user string) {
	a.Helper()
	a.events++
	err := a.Events.Log(app, schema.Default()).Append(a.Context(), []store.LogEvent{click(user, int64(a.events)*7919%1000)})
	if err == nil {
		_, err = a.Users.TakeTicket(a.Context(), app, user)
	}
	if err != nil {
		a.Fatal(err)
	}
}

// pass makes all that was written so far visible, and older than AnalysisLag.
func (a *analysed) pass() {
	a.Helper()
	if err := a.server.CatchUp(a.Context()); err != nil {
		a.Fatal(err)
	}
	next := time.Now().Truncate(time.Millisecond).Add(time.Millisecond)
	for time.Now().Before(next) { // cells have their times to the millisecond
	}
	a.SetClock(func() time.Time { return next.Add(store.AnalysisLag) })
}

// scan returns the keys of the rows of a range, up to most, and the place behind them. A
// long scan has chunks of so many bytes and users.
func (a *analysed) scan(long bool, r store.Range, most, bytes, users int) (keys []string, after string) {
	a.Helper()
	full, l := errors.New("full"), schema.Default()
	log := a.Events.Log(app, l)
	scan := log.Scan
	if long {
		scan = func(ctx context.Context, n schema.Name, r store.Range, since int64, fn func(store.Entry) error) error {
			return log.ScanLongOf(ctx, n, r, since, bytes, users, fn)
		}
	}
	err := scan(a.Context(), l.Read, r, 0, func(e store.Entry) error {
		keys, after = append(keys, e.Key()), e.After()
		if len(keys) == most {
			return full
		}
		return nil
	})
	if err != nil && !errors.Is(err, full) {
		a.Fatal(err)
	}
	return keys, after
}

// A long scan passes every acknowledged row, in order, whichever of them the app profile
// for analysis sees.
func TestScanLong(t *testing.T) {
	t.Parallel()
	for seed := range uint64(race.Or(20, 4)) {
		a, r := newAnalysed(t), rand.New(rand.NewPCG(seed, 1))
		users := []string{"a", "b", "b+", "b0", "c", "d"}
		for range 30 {
			switch r.IntN(12) {
			case 0:
				a.pass()
			case 1:
				if waiting := a.server.Waiting(); len(waiting) > 0 { // Data Boost may see newer rows
					if err := a.server.Replicate(t.Context(), waiting[r.IntN(len(waiting))]); err != nil {
						t.Fatal(err)
					}
				}
			default:
				a.write(users[r.IntN(len(users))])
			}
		}
		from := ""
		for part := range 20 {
			rows := store.Range{From: from}
			if r.IntN(3) == 0 {
				rows.To = users[r.IntN(len(users))]
			}
			most := 1 + r.IntN(8)
			want, after := a.scan(false, rows, most, 0, 0)
			if got, _ := a.scan(true, rows, most, []int{1, 300, 1000, 1 << 20}[r.IntN(4)], 1+r.IntN(7)); !cmp.Equal(want, got, cmpopts.EquateEmpty()) {
				t.Fatalf("seed %d, part %d, %+v: %s", seed, part, rows, cmp.Diff(want, got))
			}
			if from = after; r.IntN(4) == 0 {
				from = users[r.IntN(len(users))]
			}
		}
	}
}

// A long scan reads the rows of users who did not change from nowhere else than through
// the app profile for analysis.
func TestScanLongSparesCluster(t *testing.T) {
	t.Parallel()
	a := newAnalysed(t)
	for i := range 20 {
		a.write(fmt.Sprint("user", i))
	}
	a.pass()
	a.write("user7")
	before := a.server.PrimaryCounts()
	keys, _ := a.scan(true, store.Range{}, 1000, 1<<20, 1000)
	// One row of user7 as a user, and two of their log.
	if rows := a.server.PrimaryCounts().Rows - before.Rows; len(keys) != 21 || rows != 3 {
		t.Errorf("%d rows, %d of them from the cluster that is written; want 21 and 3", len(keys), rows)
	}
}
