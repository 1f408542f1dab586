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

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/migration"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// Backfill measures the backfill of a migration from narrow to wide rows.
type Backfill struct {
	Users, Events int // events per user
	Repeat        int // measurements; the median counts
	Common
}

// Targets of a backfill: its speed relative to reading and writing the same rows,
// and how many events per second one core converts.
const (
	BackfillBar  = 0.6
	TransformBar = 200_000
)

// BackfillReport is the outcome. --json prints it as it is.
type BackfillReport struct {
	Machine   Machine `json:"machine"`
	InProcess bool    `json:"inProcess"`
	Users     int     `json:"users"`
	Events    int     `json:"events"` // per user
	Repeat    int     `json:"repeat"`
	Workers   int     `json:"workers"`

	// Backfill is the engine's job from start to end. ReadAndWrite reads the same rows
	// and then writes the same rows, which were prepared. Copy reads the same rows and
	// writes them as they are, with two cells instead of nine. The three take turns.
	Backfill     RowRate `json:"backfill"`
	ReadAndWrite RowRate `json:"readAndWrite"`
	Copy         RowRate `json:"copy"`
	// Ratio is the speed of the backfill relative to ReadAndWrite, RatioToCopy relative
	// to Copy. Each is the median over the turns: a disturbance affects all
	// measurements of its turn.
	Ratio       float64 `json:"ratio"`
	RatioToCopy float64 `json:"ratioToCopy"`
	RatioBar    float64 `json:"ratioBar"`
	// Transform is how many events a second one core decodes from narrow rows and
	// encodes as wide cells, in memory.
	Transform    float64 `json:"transform"`
	TransformBar float64 `json:"transformBar"`
}

// RowRate is how fast the median run processed rows.
type RowRate struct {
	EventsPerSecond  float64   `json:"eventsPerSecond"`
	Seconds          float64   `json:"seconds"`
	Walls            []float64 `json:"walls"` // seconds of all runs
	ClientCPUSeconds float64   `json:"clientCPUSeconds"`
	BytesReceived    int64     `json:"bytesReceived"`
	PeakHeapBytes    uint64    `json:"peakHeapBytes"`
}

// Check returns a FlagError for a value out of range.
func (o Backfill) Check() error {
	if err := (Heap{Users: o.Users, Events: o.Events}).Check(); err != nil {
		return err
	}
	return Recompute{Users: o.Users, Events: []int{o.Events}, Facets: usualFacets, Values: usualValues,
		Selected: usualSelected, Repeat: o.Repeat, Readers: Readers}.Check()
}

// Run measures. It fails if the migration's verification finds a difference.
func (o Backfill) Run(ctx context.Context, start Starter) (report BackfillReport, err error) {
	if err := o.Check(); err != nil {
		return BackfillReport{}, err
	}
	c, err := openClient(ctx, start)
	if err != nil {
		return BackfillReport{}, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	m := migratingLog{c: c, d: newDataset(shape{users: o.Users, events: o.Events, facets: usualFacets,
		selected: usualSelected, values: usualValues})}
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
		Backfill: m.rate(median(runs.backfills)), ReadAndWrite: m.rate(median(runs.writes)),
		Copy: m.rate(median(runs.copies)), RatioBar: BackfillBar,
		Transform: transform, TransformBar: TransformBar,
	}
	report.Ratio, report.RatioToCopy = turnByTurn(report.ReadAndWrite, report.Backfill),
		turnByTurn(report.Copy, report.Backfill)
	return report, nil
}

// backfillRuns are the runs of each measurement.
type backfillRuns struct{ backfills, writes, copies []taken }

// measure runs all measurements in turns, each into empty tables.
func (o Backfill) measure(ctx context.Context, m *migratingLog) (runs backfillRuns, err error) {
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
		runs.backfills, runs.writes, runs.copies = append(runs.backfills, filled), append(runs.writes, written),
			append(runs.copies, copied)
	}
	return runs, nil
}

// begin empties the wide log and starts a migration to it.
func (m *migratingLog) begin(ctx context.Context) error {
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
	m.migrator = migration.New(job.Runner{
		// As many shards as run at a time.
		Settings: job.Settings{ShardUsers: max(1, (m.d.users+migrationShards-1)/migrationShards), Budget: time.Minute,
			Attempts: 1},
		Jobs: job.In(documents.NewMemory(), migration.Collection), Config: apps, Queue: m.queue, Users: m.c.store.Users,
		Now: func() time.Time { return instant }, Log: slog.New(slog.DiscardHandler),
	}, apps, m.c.store)
	_, err := m.migrator.Start(ctx, appID, schema.Wide)
	return err
}

// backfill runs the whole job.
func (m *migratingLog) backfill(ctx context.Context) error {
	if _, err := m.migrator.Backfill(ctx, appID, 0); err != nil {
		return err
	}
	s, err := m.runJob(ctx)
	if err == nil && s.Job.Totals.Counts["changed"] != m.rows() {
		err = fmt.Errorf("%d rows were copied, want %d: %v", s.Job.Totals.Counts["changed"], m.rows(), s.Faults)
	}
	return err
}

// verify runs the migration's verification.
func (m *migratingLog) verify(ctx context.Context) error {
	if _, err := m.migrator.Verify(ctx, appID); err != nil {
		return err
	}
	s, err := m.runJob(ctx)
	if err == nil && (s.Job.Totals.Counts[job.CountRows] != m.rows() || s.Job.Totals.Counts[job.CountFaulty] != 0) {
		err = fmt.Errorf("the logs differ after the backfill: %d rows compared, want %d; %v",
			s.Job.Totals.Counts[job.CountRows], m.rows(), s.Faults)
	}
	return err
}

// runJob runs the tasks of the migration's job until it is done.
func (m *migratingLog) runJob(ctx context.Context) (migration.Status, error) {
	if err := m.queue.work(ctx, m.migrator.Runner); err != nil {
		return migration.Status{}, err
	}
	s, err := m.migrator.Status(ctx, appID)
	if err == nil && s.Job.State != job.Done {
		err = fmt.Errorf("job %s is %s: %s", s.Job.ID, s.Job.State, s.Job.Error)
	}
	return s, err
}

func (m *migratingLog) rows() int64 { return int64(m.d.users) * int64(m.d.shape.events) }

func (m *migratingLog) rate(t taken) RowRate {
	return RowRate{EventsPerSecond: ratio(float64(m.rows()), t.seconds), Seconds: t.seconds, Walls: t.walls,
		ClientCPUSeconds: t.cpu,
		BytesReceived:    t.received, PeakHeapBytes: t.peakHeap}
}

// turnByTurn is the ratio of two durations: the median over the turns.
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
	fmt.Fprintf(out, "%d users x %d events, from narrow rows with JSON to wide ones; %d workers, median of %d\n",
		r.Users, r.Events, r.Workers, r.Repeat)
	r.Machine.print(out, r.InProcess)
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tseconds\tevents/s\tCPU s\tMB in\tpeak heap MB\t")
	for _, line := range []struct {
		what string
		RowRate
	}{{"backfill", r.Backfill}, {"the same rows read, then written", r.ReadAndWrite},
		{"narrow rows copied as they are", r.Copy}} {
		fmt.Fprintf(w, "%s\t%.3f\t%.0f\t%.3f\t%.1f\t%.0f\t\n", line.what, line.Seconds, line.EventsPerSecond,
			line.ClientCPUSeconds,
			megabytes(line.BytesReceived), megabytes(line.PeakHeapBytes))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nthe backfill is %.2f times as fast as reading and then writing the same rows (bar: "+
		"%.2f), and %.2f times as fast as a copy\n",
		r.Ratio, r.RatioBar, r.RatioToCopy)
	fmt.Fprintf(out, "in memory one core turns %.0f events a second from narrow into wide (bar: %.0f)\n",
		r.Transform, r.TransformBar)
	return nil
}
