package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/migration"
	"github.com/affinityengine/affinity/shared/schema"
)

// Backfill says of how many rows to measure the backfill of a move from narrow to wide.
type Backfill struct {
	Users, Events int // events a user
	Repeat        int // measurements, of which the median counts
	Common
}

// Bars of a backfill: how fast it is by the side of copying the same rows as they are, and how many events a second one core turns
// from one schema into the other.
const (
	BackfillBar  = 0.6
	TransformBar = 200_000
)

// BackfillReport is what came of it; its JSON form is what --json prints.
type BackfillReport struct {
	Machine   Machine `json:"machine"`
	InProcess bool    `json:"inProcess"`
	Users     int     `json:"users"`
	Events    int     `json:"events"` // a user
	Repeat    int     `json:"repeat"`
	Workers   int     `json:"workers"`

	// Backfill is the engine's job end to end. ReadAndWrite reads the rows that it
	// reads, and then writes the rows that it writes, made beforehand. Copy reads the
	// same rows and writes them as they are, which are two cells each in place of nine.
	// They take turns.
	Backfill     RowRate `json:"backfill"`
	ReadAndWrite RowRate `json:"readAndWrite"`
	Copy         RowRate `json:"copy"`
	// Ratio is how fast the backfill is by the side of ReadAndWrite, RatioToCopy by
	// that of Copy: the median of the turns, since what disturbs one disturbs all that
	// are measured in it.
	Ratio       float64 `json:"ratio"`
	RatioToCopy float64 `json:"ratioToCopy"`
	RatioBar    float64 `json:"ratioBar"`
	// Transform is how many events a second one core decodes from narrow rows and
	// encodes as wide cells, in memory.
	Transform    float64 `json:"transform"`
	TransformBar float64 `json:"transformBar"`
}

// RowRate is how fast rows were gone through in the median run.
type RowRate struct {
	EventsPerSecond  float64   `json:"eventsPerSecond"`
	Seconds          float64   `json:"seconds"`
	Walls            []float64 `json:"walls"` // seconds of all runs
	ClientCPUSeconds float64   `json:"clientCPUSeconds"`
	BytesReceived    int64     `json:"bytesReceived"`
	PeakHeapBytes    uint64    `json:"peakHeapBytes"`
}

// Check returns a FlagError for what cannot be measured.
func (o Backfill) Check() error {
	return Recompute{Users: o.Users, Events: o.Events, Facets: usualFacets, Values: usualValues, Selected: usualSelected, Repeat: o.Repeat, Readers: Readers}.Check()
}

// Run measures. An error may also mean that the move's own verification found the logs different.
func (o Backfill) Run(ctx context.Context, start Starter) (report BackfillReport, err error) {
	if err := o.Check(); err != nil {
		return BackfillReport{}, err
	}
	c, err := openClient(ctx, start)
	if err != nil {
		return BackfillReport{}, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	m := moving{c: c, d: newDataset(shape{users: o.Users, events: o.Events, facets: usualFacets, selected: usualSelected, values: usualValues})}
	o.progress("loading %d users of %d events", o.Users, o.Events)
	if err := m.load(ctx); err != nil {
		return BackfillReport{}, fmt.Errorf("load the narrow log: %w", err)
	}
	o.progress("transform in memory")
	transform, err := m.transform(ctx)
	if err != nil {
		return BackfillReport{}, fmt.Errorf("transform rows: %w", err)
	}
	runs, err := o.measure(ctx, &m)
	if err != nil {
		return BackfillReport{}, err
	}
	o.progress("verification")
	if err := m.verify(ctx); err != nil {
		return BackfillReport{}, err
	}
	report = BackfillReport{
		Machine: machine(), InProcess: o.InProcess, Users: o.Users, Events: o.Events, Repeat: o.Repeat, Workers: workers(),
		Backfill: m.rate(median(runs.backfills)), ReadAndWrite: m.rate(median(runs.writes)), Copy: m.rate(median(runs.copies)), RatioBar: BackfillBar,
		Transform: transform, TransformBar: TransformBar,
	}
	report.Ratio, report.RatioToCopy = turnByTurn(report.ReadAndWrite, report.Backfill), turnByTurn(report.Copy, report.Backfill)
	return report, nil
}

// backfillRuns are the measurements.
type backfillRuns struct{ backfills, writes, copies []taken }

// measure takes turns, each time into empty tables.
func (o Backfill) measure(ctx context.Context, m *moving) (runs backfillRuns, err error) {
	for range o.Repeat {
		o.progress("copy")
		if err := m.empty(ctx, tableCopies); err != nil {
			return runs, err
		}
		copied, err := m.c.measure(func() error { return m.copyRows(ctx) })
		if err != nil {
			return runs, fmt.Errorf("copy rows: %w", err)
		}
		o.progress("read and write")
		written, err := m.readAndWrite(ctx)
		if err != nil {
			return runs, fmt.Errorf("read and write rows: %w", err)
		}
		o.progress("backfill")
		if err := m.begin(ctx); err != nil {
			return runs, err
		}
		filled, err := m.c.measure(func() error { return m.backfill(ctx) })
		if err != nil {
			return runs, fmt.Errorf("backfill: %w", err)
		}
		runs.backfills, runs.writes, runs.copies = append(runs.backfills, filled), append(runs.writes, written), append(runs.copies, copied)
	}
	return runs, nil
}

// begin empties the wide log and begins a move to it.
func (m *moving) begin(ctx context.Context) error {
	if err := m.empty(ctx, tableWide); err != nil {
		return err
	}
	apps := config.NewMemory()
	app := benchApp(m.d)
	app.Log = published
	if err := apps.CreateApp(ctx, app); err != nil {
		return err
	}
	m.queue = &tasks{}
	m.mover = migration.New(job.Runner{
		// As many shards as there are lanes for.
		Config: job.Config{ShardUsers: max(1, (m.d.users+moveShards-1)/moveShards), Budget: time.Minute, Attempts: 1},
		Jobs:   job.NewMemory(), Apps: apps, Queue: m.queue, Users: m.c.store,
		Now: func() time.Time { return instant }, Log: slog.New(slog.DiscardHandler),
	}, apps, m.c.store)
	_, err := m.mover.Start(ctx, appID, schema.Wide)
	return err
}

// backfill is the whole job, from its order to its end.
func (m *moving) backfill(ctx context.Context) error {
	if _, err := m.mover.Backfill(ctx, appID, 0); err != nil {
		return err
	}
	s, err := m.carryOut(ctx)
	if err == nil && s.Job.Totals.Changed != m.rows() {
		err = fmt.Errorf("%d rows were copied, want %d: %v", s.Job.Totals.Changed, m.rows(), s.Faults)
	}
	return err
}

// verify has the engine compare the logs.
func (m *moving) verify(ctx context.Context) error {
	if _, err := m.mover.Verify(ctx, appID); err != nil {
		return err
	}
	s, err := m.carryOut(ctx)
	if err == nil && (s.Job.Totals.Events != m.rows() || s.Job.Totals.Faulty != 0) {
		err = fmt.Errorf("the logs differ after the backfill: %d rows compared, want %d; %v", s.Job.Totals.Events, m.rows(), s.Faults)
	}
	return err
}

// carryOut works on what the job of the move has ordered, until it is done.
func (m *moving) carryOut(ctx context.Context) (migration.Status, error) {
	if err := m.queue.work(ctx, m.mover.Runner); err != nil {
		return migration.Status{}, err
	}
	s, err := m.mover.Status(ctx, appID)
	if err == nil && s.Job.State != job.Done {
		err = fmt.Errorf("job %s is %s: %s", s.Job.ID, s.Job.State, s.Job.Error)
	}
	return s, err
}

func (m *moving) rows() int64 { return int64(m.d.users) * int64(m.d.shape.events) }

func (m *moving) rate(t taken) RowRate {
	return RowRate{EventsPerSecond: ratio(float64(m.rows()), t.seconds), Seconds: t.seconds, Walls: t.walls, ClientCPUSeconds: t.cpu,
		BytesReceived: t.received, PeakHeapBytes: t.peakHeap}
}

// turnByTurn is how many times as long the one took as the other, the median of the turns.
func turnByTurn(one, other RowRate) float64 {
	var ratios []float64
	for i := range one.Walls {
		ratios = append(ratios, ratio(one.Walls[i], other.Walls[i]))
	}
	slices.Sort(ratios)
	return ratios[(len(ratios)-1)/2]
}

// Print writes the report for people.
func (r BackfillReport) Print(out io.Writer) error {
	fmt.Fprintf(out, "%d users x %d events, from narrow rows with JSON to wide ones; %d workers, median of %d\n", r.Users, r.Events, r.Workers, r.Repeat)
	r.Machine.print(out, r.InProcess)
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tseconds\tevents/s\tCPU s\tMB in\tpeak heap MB\t")
	for _, line := range []struct {
		what string
		RowRate
	}{{"backfill", r.Backfill}, {"the same rows read, then written", r.ReadAndWrite}, {"narrow rows copied as they are", r.Copy}} {
		fmt.Fprintf(w, "%s\t%.3f\t%.0f\t%.3f\t%.1f\t%.0f\t\n", line.what, line.Seconds, line.EventsPerSecond, line.ClientCPUSeconds,
			megabytes(line.BytesReceived), megabytes(line.PeakHeapBytes))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nthe backfill is %.2f times as fast as reading and then writing the same rows (bar: %.2f), and %.2f times as fast as a copy\n",
		r.Ratio, r.RatioBar, r.RatioToCopy)
	fmt.Fprintf(out, "in memory one core turns %.0f events a second from narrow into wide (bar: %.0f)\n", r.Transform, r.TransformBar)
	return nil
}
