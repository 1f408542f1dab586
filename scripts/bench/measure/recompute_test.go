package measure

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/store"
)

func small() Recompute {
	return Recompute{Users: 20, Events: []int{10}, Facets: 2, Values: 2, Selected: 1, Repeat: 1, Readers: Readers, Floor: true, Common: Common{InProcess: true}}
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
		results := report.Sets[0].Results
		if len(results) != 2*len(Readers) {
			t.Fatalf("%d results, want two of each reader", len(results))
		}
		for i, r := range results {
			if r.Reader != Readers[i/2] || r.Writes != (i%2 == 1) {
				t.Errorf("result %d is of %s, writes %t", i, r.Reader, r.Writes)
			}
			if r.Seconds <= 0 || r.EventsPerSecond <= 0 || r.ClientCPUSeconds <= 0 || r.BytesReceived <= 0 || r.Allocations == 0 || r.PeakHeapBytes == 0 ||
				r.FloorSeconds <= 0 || r.FloorCPUSeconds <= 0 || r.FloorBytesReceived <= 0 || r.CPUToFloor <= 0 || r.SpeedupToNarrow <= 0 || r.LoadSeconds <= 0 {
				t.Errorf("a value is missing: %+v", r)
			}
			checkRows(t, r, tail)
			if r.Reader == Narrow && (r.SpeedupToNarrow != 1 || r.CPUSpeedupToNarrow != 1) {
				t.Errorf("narrow is %v times as fast as narrow", r.SpeedupToNarrow)
			}
			if len(r.Walls) != o.Repeat || !slices.Contains(r.Walls, r.Seconds) {
				t.Errorf("%v s is not one of %v", r.Seconds, r.Walls)
			}
		}
	}
}

// checkRows checks the rows that the server counted for users with ten events, of which
// tail are outside the history.
func checkRows(t *testing.T, r Result, tail int) {
	t.Helper()
	read := map[bool]float64{false: 10, true: float64(2 + tail)}[r.Reader == History]
	if r.Reader == History && tail == 10 {
		read-- // there is no block
	}
	if written := map[bool]float64{true: 1}[r.Writes]; r.RowsReadPerUser > read || r.RowsWrittenPerUser != written {
		t.Errorf("%s with %d events outside: %v rows of a user read and %v written, want %v and %v", r.Reader, tail, r.RowsReadPerUser, r.RowsWrittenPerUser, read, written)
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
	for _, r := range report.Sets[0].Results {
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
	o.Readers, o.Floor = []string{History, NarrowFast}, false
	report, err := o.Run(t.Context(), InProcess)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range report.Sets[0].Results {
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
	if lines := strings.Split(strings.TrimSpace(text.String()), "\n"); len(lines) != 11 || strings.Contains(text.String(), "floor") {
		t.Errorf("the table is not a head and a row per result:\n%s", text.String())
	}
}

// There is a table for each number of events a user, and for each real data set that
// has all its files. A directory without one is named.
func TestSets(t *testing.T) {
	o := small()
	o.Users, o.Events, o.Readers, o.Floor, o.Data = 0, []int{140_000, 70_000}, []string{History}, false, t.TempDir()
	if a, b := o.shape(7), o.shape(1<<30); a.users != 20_000 || b.users != 1 {
		t.Errorf("%d users with 7 events, %d with very many", a.users, b.users)
	}
	o.Users, o.Events = 2, []int{1, 3}
	report, err := o.Run(t.Context(), InProcess)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := report.Print(&text); err != nil || !strings.Contains(text.String(), "no real data in "+o.Data) {
		t.Errorf("%v:\n%s", err, text.String())
	}
	writeShop(t, filepath.Join(o.Data, "shop"))
	if err := os.Mkdir(filepath.Join(o.Data, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	o.Readers = []string{Narrow, History}
	if report, err = o.Run(t.Context(), InProcess); err != nil {
		t.Fatal(err)
	}
	text.Reset()
	if err := report.Print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n1 events a user (synthetic: 2 users, 2 events)", "\n3 events a user (synthetic: 2 users, 6 events)", "\n2.5 events a user (shop: 2 users, 5 events)"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, text.String())
		}
	}
	if set := report.Sets[2]; len(report.Sets) != 3 || len(set.Results) != 4 || set.Results[2].RowsReadPerUser > 2 {
		t.Errorf("measured %+v", report.Sets)
	}
}

// writeShop writes a real data set: five events of two users, one of them twice.
func writeShop(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	event := `{"eventType":"click","eventName":"Clicked","userToken":"%s","timestamp":%d,"objectIDs":["%s"]}` + "\n"
	events := ""
	for i, user := range []string{"ann-2", "ann", "ann-2", "ann-2", "ann", "ann-2"} {
		events += fmt.Sprintf(event, user, 1_200_000_000_000+int64(i%5)*60_000, []string{"a", "b"}[i%5%2])
	}
	for name, text := range map[string]string{
		strategyFile: `{"eventsScoring":[{"eventType":"click","eventName":"Clicked","score":10}],"facetsScoring":[{"facetName":"brand","score":5}]}`,
		objectsFile:  `{"objectID":"a","brand":["Acme","Bolt"],"size":"L"}` + "\n" + `{"objectID":"b","brand":"Bolt"}` + "\n",
		eventsFile:   events,
	} {
		var b bytes.Buffer
		if b.WriteString(text); name != strategyFile {
			b.Reset()
			w := gzip.NewWriter(&b)
			if _, err := w.Write([]byte(text)); err != nil || w.Close() != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A data set that is not one is refused with the place of the fault.
func TestBrokenData(t *testing.T) {
	dir := t.TempDir()
	writeShop(t, filepath.Join(dir, "shop"))
	if err := os.WriteFile(filepath.Join(dir, "shop", eventsFile), []byte("not zipped"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openReal(dir, "shop"); err == nil || !strings.Contains(err.Error(), eventsFile) {
		t.Errorf("%v, want an error of %s", err, eventsFile)
	}
}

func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*Recompute){
		"--users -1":          func(o *Recompute) { o.Users = -1 },
		"--users 10000001":    func(o *Recompute) { o.Users = 10_000_001 },
		"--events 0":          func(o *Recompute) { o.Events = []int{10, 0} },
		"--events: name one":  func(o *Recompute) { o.Events = nil },
		"--events: 10 is":     func(o *Recompute) { o.Events = []int{10, 10} },
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
	d := newDataset(o.shape(10))
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
		if _, err := c.store.Users.TakeTicket(ctx, appID, user); err != nil {
			t.Fatal(err)
		}
		want = append(want, user)
	}
	slices.SortFunc(want, func(a, b string) int { return strings.Compare(a+",", b+",") })
	for from := range want {
		for limit := 1; limit <= len(want)+1; limit++ {
			var got []string
			err := c.store.Users.ScanUsers(ctx, appID, want[from], "", limit, store.UserState, func(user string, _ store.User) error {
				got = append(got, user)
				return nil
			})
			if rest := want[from:]; err != nil || !slices.Equal(got, rest[:min(limit, len(rest))]) {
				t.Errorf("%d from %s: %v, %v", limit, want[from], got, err)
			}
		}
	}
}
