package measure

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

func small() Recompute {
	return Recompute{Users: 20, Events: 10, Facets: 2, Values: 2, Selected: 1, Repeat: 1, Readers: Readers, Common: Common{InProcess: true}}
}

// Every reader computes and writes the profiles of the formula: else Run fails.
func TestAllReaders(t *testing.T) {
	for _, tail := range []int{0, 3, 10} {
		o := small()
		o.Tail, o.Repeat = tail, 1+tail%2
		report, err := o.Run(t.Context(), InProcess)
		if err != nil {
			t.Fatalf("with %d events outside: %v", tail, err)
		}
		if len(report.Results) != 2*len(Readers) {
			t.Fatalf("%d results, want two of each reader", len(report.Results))
		}
		for i, r := range report.Results {
			if r.Reader != Readers[i/2] || r.Writes != (i%2 == 1) {
				t.Errorf("result %d is of %s, writes %t", i, r.Reader, r.Writes)
			}
			if r.Seconds <= 0 || r.EventsPerSecond <= 0 || r.ClientCPUSeconds <= 0 || r.BytesReceived <= 0 || r.Allocations == 0 || r.PeakHeapBytes == 0 ||
				r.FloorSeconds <= 0 || r.FloorCPUSeconds <= 0 || r.FloorBytesReceived <= 0 || r.CPUToFloor <= 0 || r.SpeedupToNarrow <= 0 || r.LoadSeconds <= 0 {
				t.Errorf("a value is missing: %+v", r)
			}
			if r.Reader == Narrow && (r.SpeedupToNarrow != 1 || r.CPUSpeedupToNarrow != 1) {
				t.Errorf("narrow is %v times as fast as narrow", r.SpeedupToNarrow)
			}
			if len(r.Walls) != o.Repeat || !slices.Contains(r.Walls, r.Seconds) {
				t.Errorf("%v s is not one of %v", r.Seconds, r.Walls)
			}
		}
	}
}

// The server's filter saves bytes, and the floor receives as much as its reader.
func TestBytesReceived(t *testing.T) {
	o := small()
	report, err := o.Run(t.Context(), InProcess)
	if err != nil {
		t.Fatal(err)
	}
	received := map[string]int64{}
	for _, r := range report.Results {
		if !r.Writes {
			received[r.Reader] = r.BytesReceived
			if off := float64(r.BytesReceived) / float64(r.FloorBytesReceived); off < 0.9 || off > 1.1 {
				t.Errorf("%s receives %d bytes, its floor %d", r.Reader, r.BytesReceived, r.FloorBytesReceived)
			}
		}
	}
	if received[Wide] >= received[WideClient] || received[Narrow] != received[NarrowFast] || received[History] >= received[Wide] {
		t.Errorf("bytes received: %v", received)
	}
}

func TestOnlyNamedReadersRun(t *testing.T) {
	o := small()
	o.Readers = []string{History, NarrowFast}
	report, err := o.Run(t.Context(), InProcess)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range report.Results {
		names = append(names, r.Reader)
		if r.SpeedupToNarrow != 0 {
			t.Errorf("%s is compared with narrow, which was not run", r.Reader)
		}
	}
	if want := []string{NarrowFast, NarrowFast, History, History}; !slices.Equal(names, want) {
		t.Errorf("ran %v, want %v", names, want)
	}
	var text bytes.Buffer
	if err := report.Print(&text); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(text.String()), "\n"); len(lines) != 9 {
		t.Errorf("the table is not a head and a row per result:\n%s", text.String())
	}
}

func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*Recompute){
		"--users 0":           func(o *Recompute) { o.Users = 0 },
		"--users 10000001":    func(o *Recompute) { o.Users = 10_000_001 },
		"--events 0":          func(o *Recompute) { o.Events = 0 },
		"--facets 0":          func(o *Recompute) { o.Facets = 0 },
		"--facets 101":        func(o *Recompute) { o.Facets = 101 },
		"--values 0":          func(o *Recompute) { o.Values = 0 },
		"--values 21":         func(o *Recompute) { o.Values = 21 },
		"--selected 0":        func(o *Recompute) { o.Selected = 0 },
		"--selected 3":        func(o *Recompute) { o.Selected = 3 },
		"--tail -1":           func(o *Recompute) { o.Tail = -1 },
		"--tail 11":           func(o *Recompute) { o.Tail = 11 },
		"--repeat 0":          func(o *Recompute) { o.Repeat = 0 },
		"--readers: name one": func(o *Recompute) { o.Readers = nil },
		`--readers "fast"`:    func(o *Recompute) { o.Readers = []string{Narrow, "fast"} },
		"narrow is named":     func(o *Recompute) { o.Readers = []string{Narrow, History, Narrow} },
	} {
		o := small()
		change(&o)
		_, err := o.Run(t.Context(), nil)
		var flag FlagError
		if !errors.As(err, &flag) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, err := range []error{Heap{Users: 0, Events: 1}.Check(), Heap{Users: 1, Events: 0}.Check(), Read{Events: 0, Reads: 1}.Check(), Read{Events: 1, Reads: 0}.Check()} {
		var flag FlagError
		if !errors.As(err, &flag) {
			t.Errorf("%v, want a FlagError", err)
		}
	}
}

// testClient is a client of a server in this process.
func testClient(t *testing.T) *client {
	t.Helper()
	c, err := openClient(t.Context(), InProcess)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// The benchmark fails if a reader computes a wrong profile.
func TestWrongProfilesFail(t *testing.T) {
	ctx, o, c := t.Context(), small(), testClient(t)
	d := newDataset(o.shape())
	if err := loadPublished(ctx, c, d, 0); err != nil {
		t.Fatal(err)
	}
	r := openPublished(Narrow, c, d, 0)
	fails := func(want string, change func(*judge)) {
		t.Helper()
		j, err := newJudge(ctx, d)
		if err != nil {
			t.Fatal(err)
		}
		change(j)
		if _, err := o.measureReader(ctx, Narrow, r, c, d, j); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	fails("all scores written add up to", func(j *judge) { j.scores *= 1 + 1e-8 })
	fails("read 200 events", func(j *judge) { j.expect.events++ })
	fails("computed 20 profiles", func(j *judge) { j.expect.users-- })
	fails("until", func(j *judge) { j.first[3].Until++ })
	fails("scores", func(j *judge) { j.first[19].Affinities[0].Scores[0] *= 1 - 1e-8 })
	fails("affinities, want", func(j *judge) { j.first[0].Affinities = j.first[0].Affinities[1:] })
}

// loadHistories writes what a fold of the engine writes.
func TestHistoriesEqualFolds(t *testing.T) {
	ctx, direct, folded := t.Context(), testClient(t), testClient(t)
	d := newDataset(shape{users: 1, events: 3000, facets: 8, selected: 2, values: 2}) // more than a small block takes
	if err := loadHistories(ctx, direct, d, 0); err != nil {
		t.Fatal(err)
	}
	app := benchApp(d)
	engine := profile.New(folded.store, still(app), config.NewCached(still(app), time.Hour), func() time.Time { return instant }, slog.New(slog.DiscardHandler))
	if _, err := engine.Import(ctx, app, logEvents(d.user(0), d.events(0, nil))); err != nil {
		t.Fatal(err)
	}
	if done, err := engine.Fold(ctx, app, d.user(0)); err != nil || !done {
		t.Fatalf("folded %t, %v", done, err)
	}
	want, wantEvents := readHistory(ctx, t, folded, d.user(0))
	got, gotEvents := readHistory(ctx, t, direct, d.user(0))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifest (-fold +direct):\n%s", diff)
	}
	if len(got.Blocks) < 2 || got.Complete != 1 {
		t.Errorf("%d blocks, complete at %d", len(got.Blocks), got.Complete)
	}
	if !cmp.Equal(wantEvents, gotEvents) || len(gotEvents) != 3000 {
		t.Errorf("the fold packed %d events; %d were written and differ", len(wantEvents), len(gotEvents))
	}
}

// readHistory reads a manifest, with its newest ticket as 1 and others as 0, and the
// events in its blocks. The log does not keep the order of an event's counts.
func readHistory(ctx context.Context, t *testing.T, c *client, user string) (history.Manifest, []affinity.Event) {
	t.Helper()
	row, err := c.store.ReadUser(ctx, appID, user)
	if err != nil {
		t.Fatal(err)
	}
	m, err := history.ParseManifest(row.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	var names []store.BlockName
	for i := range m.Blocks {
		names = append(names, store.BlockName{User: user, ID: m.Blocks[i].ID})
		m.Blocks[i].ID.Ticket = 0
	}
	if m.Version = 0; m.Complete == row.Ticket {
		m.Complete = 1
	}
	var events []affinity.Event
	err = c.store.ReadBlocks(ctx, appID, names, func(_ store.BlockName, value []byte) error {
		for e, err := range history.Events(slices.Clone(value), nil) {
			if err != nil {
				return err
			}
			e.Counts = slices.Clone(e.Counts)
			slices.SortFunc(e.Counts, func(a, b affinity.Count) int {
				return strings.Compare(a.Facet+"\x00"+a.Value, b.Facet+"\x00"+b.Value)
			})
			events = append(events, e)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, events
}

func TestHeap(t *testing.T) {
	report, err := Heap{Users: 300, Events: 3, Common: Common{InProcess: true}}.Run(t.Context(), InProcess)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Runs) != 2 || report.Runs[0].Users != 30 || report.Runs[1].Users != 300 || report.Runs[1].PeakHeapBytes == 0 {
		t.Errorf("ran %+v", report.Runs)
	}
	var text bytes.Buffer
	if err := report.Print(&text); err != nil || !strings.Contains(text.String(), "peak heap MB") {
		t.Errorf("printed %q, %v", text.String(), err)
	}
}

func TestRead(t *testing.T) {
	report, err := Read{Events: 30, Reads: 30, Common: Common{InProcess: true}}.Run(t.Context(), InProcess)
	if err != nil {
		t.Fatal(err)
	}
	if report.Whole.P50 <= 0 || report.Rows.P99 < report.Rows.P50 || report.Write.P50 <= 0 || report.OnTop.P50 != report.Whole.P50-report.Rows.P50 {
		t.Errorf("measured %+v", report)
	}
	var text bytes.Buffer
	if err := report.Print(&text); err != nil || !strings.Contains(text.String(), "on top of its row reads") {
		t.Errorf("printed %q, %v", text.String(), err)
	}
}

// The server stops at the limit of a request and sends the same rows.
func TestLimit(t *testing.T) {
	ctx, c := t.Context(), testClient(t)
	var want []string
	for _, user := range []string{"d", "a", "c+", "b", "c", "e"} { // not in order
		if _, err := c.store.TakeTicket(ctx, appID, user); err != nil {
			t.Fatal(err)
		}
		want = append(want, user)
	}
	slices.SortFunc(want, func(a, b string) int { return strings.Compare(a+",", b+",") })
	for from := range want {
		for limit := 1; limit <= len(want)+1; limit++ {
			var got []string
			err := c.store.ScanUsers(ctx, appID, want[from], "", limit, store.UserState, func(user string, _ store.User) error {
				got = append(got, user)
				return nil
			})
			if rest := want[from:]; err != nil || !slices.Equal(got, rest[:min(limit, len(rest))]) {
				t.Errorf("%d from %s: %v, %v", limit, want[from], got, err)
			}
		}
	}
}
