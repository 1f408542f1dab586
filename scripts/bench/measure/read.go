package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// Read measures reads of profiles that must be computed from a user's history.
type Read struct {
	Events, Reads int
	Common
}

// readUsers is how many users are read, in turn and repeatedly.
const readUsers = 100

// Defaults of the recompute measurement.
const (
	usualFacets   = 8
	usualSelected = 3
	usualValues   = 2
)

// ReadReport is the outcome. --json prints it as it is.
type ReadReport struct {
	Machine   Machine `json:"machine"`
	InProcess bool    `json:"inProcess"`
	Events    int     `json:"events"` // of each user read
	Reads     int     `json:"reads"`

	// Whole is a read that computes and stores the profile. Rows only reads the same
	// user row and blocks, Write only writes the same profile. The three take turns.
	Whole Percentiles `json:"whole"`
	Rows  Percentiles `json:"rows"`
	Write Percentiles `json:"write"`
	// OnTop is Whole minus Rows for each percentile.
	OnTop Percentiles `json:"onTop"`
}

// Percentiles are in milliseconds.
type Percentiles struct {
	P50 float64 `json:"p50Ms"`
	P99 float64 `json:"p99Ms"`
}

func (p Percentiles) minus(q Percentiles) Percentiles {
	return Percentiles{p.P50 - q.P50, p.P99 - q.P99}
}

// stopwatch measures one thing many times, in microseconds.
type stopwatch struct{ *hdrhistogram.Histogram }

func newStopwatch() stopwatch {
	return stopwatch{hdrhistogram.New(1, time.Minute.Microseconds(), 3)}
}

func (s stopwatch) time(do func() error) error {
	began := time.Now()
	if err := do(); err != nil {
		return err
	}
	return s.RecordValue(time.Since(began).Microseconds())
}

func (s stopwatch) percentiles() Percentiles {
	return Percentiles{P50: float64(s.ValueAtQuantile(50)) / 1e3, P99: float64(s.ValueAtQuantile(99)) / 1e3}
}

// Check returns a FlagError for a value out of range.
func (o Read) Check() error {
	switch {
	case o.Events < 1:
		return flagf("--events %d: must be 1 or more", o.Events)
	case o.Reads < 1:
		return flagf("--reads %d: must be 1 or more", o.Reads)
	}
	return nil
}

// Run measures.
func (o Read) Run(ctx context.Context, start Starter) (report ReadReport, err error) {
	if err := o.Check(); err != nil {
		return ReadReport{}, err
	}
	c, err := openClient(ctx, start)
	if err != nil {
		return ReadReport{}, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	d := newDataset(shape{users: readUsers, events: o.Events, facets: usualFacets, selected: usualSelected,
		values: usualValues})
	o.progress("loading %d users of %d events", readUsers, o.Events)
	if err := loadHistories(ctx, c, d, 0); err != nil {
		return ReadReport{}, fmt.Errorf("load histories: %w", err)
	}
	o.progress("%d reads", o.Reads)
	r := reading{c: c, d: d, reader: newHistoryReader(c, d, 0), whole: newStopwatch(), rows: newStopwatch(),
		write: newStopwatch()}
	for i := range o.Reads {
		if err := r.read(ctx, d.user(i%readUsers)); err != nil {
			return ReadReport{}, err
		}
	}
	report = ReadReport{
		Machine: machine(), InProcess: o.InProcess, Events: o.Events, Reads: o.Reads,
		Whole: r.whole.percentiles(), Rows: r.rows.percentiles(), Write: r.write.percentiles(),
	}
	report.OnTop = report.Whole.minus(report.Rows)
	return report, nil
}

type reading struct {
	c                  *client
	d                  *dataset
	reader             *historyReader
	whole, rows, write stopwatch
}

// read reads one user's profile, which the engine computes because the strategy's
// version changed, and then repeats the engine's requests to Bigtable alone.
func (r *reading) read(ctx context.Context, user string) error {
	app := r.reader.app
	r.c.version++
	app.StrategyVersion, app.ScoringVersion = r.c.version, r.c.version
	err := r.whole.time(func() error {
		result, err := r.reader.engine.Read(ctx, app, user, 0)
		if err == nil && (result.Stored || !result.Known) {
			err = fmt.Errorf("the profile of %s was not computed", user)
		}
		return err
	})
	if err != nil {
		return err
	}
	row, err := r.c.store.Users.ReadUser(ctx, appID, user)
	if err != nil {
		return err
	}
	m, err := history.ParseManifest(row.Manifest)
	if err != nil {
		return fmt.Errorf("manifest of %s: %w", user, err)
	}
	if err := r.rows.time(func() error { return r.readRows(ctx, user, m) }); err != nil {
		return err
	}
	write := store.ProfileWrite{User: user, Row: row, Value: row.Profile,
		Summary: row.Profile[:min(len(row.Profile), 64)], Version: app.StrategyVersion + 1}
	r.c.version++
	return r.write.time(func() error { return r.c.store.Users.WriteProfiles(ctx, appID, []store.ProfileWrite{write}) })
}

// readRows reads what the engine reads of a user: the row, and the blocks of the manifest.
func (r *reading) readRows(ctx context.Context, user string, m history.Manifest) error {
	if _, err := r.c.store.Users.ReadUser(ctx, appID, user); err != nil {
		return err
	}
	var names []store.BlockName
	for _, b := range m.Blocks {
		if !b.Inline {
			names = append(names, store.BlockName{User: user, ID: b.ID})
			continue
		}
		if err := r.c.store.Users.ReadInline(ctx, appID, []string{user},
			func(string, []byte) error { return nil }); err != nil {
			return err
		}
	}
	return r.c.store.Histories.ReadBlocks(ctx, appID, names, func(store.BlockName, []byte) error { return nil })
}

// Print writes the report for people.
func (r ReadReport) Print(out io.Writer) error {
	fmt.Fprintf(out, "%d reads of profiles of %d events, one after the other\n", r.Reads, r.Events)
	r.Machine.print(out, r.InProcess)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tp50 ms\tp99 ms")
	for _, line := range []struct {
		what string
		Percentiles
	}{
		{"read that computes and stores", r.Whole},
		{"its row reads alone", r.Rows},
		{"its write alone", r.Write},
		{"on top of its row reads", r.OnTop},
	} {
		fmt.Fprintf(w, "%s\t%.3f\t%.3f\n", line.what, line.P50, line.P99)
	}
	return w.Flush()
}
