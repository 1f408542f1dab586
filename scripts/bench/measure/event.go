package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// Event measures what one new event of a user with a history costs, until the user's
// profile is stored.
type Event struct {
	Events []int // of the user, one measurement each
	Repeat int   // new events of each kind
	Common
}

// maxEventHistory bounds the events of the user.
const maxEventHistory = 1_000_000

// EventReport is the outcome. --json prints it as it is.
type EventReport struct {
	Machine   Machine    `json:"machine"`
	InProcess bool       `json:"inProcess"` // processor time is that of both
	Repeat    int        `json:"repeat"`
	Runs      []EventRun `json:"runs"`
}

// EventRun is what new events of one user cost, by the way to the profile.
type EventRun struct {
	Events int        `json:"events"` // of the user before
	Values int        `json:"values"` // of the profile
	Ways   []EventWay `json:"ways"`
}

// EventWay is what one new event costs on one way, on average.
type EventWay struct {
	Way          string  `json:"way"` // computed, row or memory
	CPUMillis    float64 `json:"cpuMs"`
	Milliseconds float64 `json:"ms"`
	Received     float64 `json:"bytesReceived"`
	Requests     float64 `json:"requests"` // that the server counted
	RowsRead     float64 `json:"rowsRead"`
}

// Check returns a FlagError for a value out of range.
func (o Event) Check() error {
	switch {
	case len(o.Events) == 0:
		return flagf("--events: name at least one number")
	case slices.Min(o.Events) < 1 || slices.Max(o.Events) > maxEventHistory:
		return flagf("--events %d: must be 1 to %d", slices.Min(o.Events), maxEventHistory)
	case o.Repeat < 1:
		return flagf("--repeat %d: must be 1 or more", o.Repeat)
	}
	return nil
}

// Run measures.
func (o Event) Run(ctx context.Context, start Starter) (EventReport, error) {
	if err := o.Check(); err != nil {
		return EventReport{}, err
	}
	report := EventReport{Machine: machine(), InProcess: o.InProcess, Repeat: o.Repeat}
	for _, events := range o.Events {
		run, err := o.user(ctx, start, events)
		if err != nil {
			return EventReport{}, fmt.Errorf("a user with %d events: %w", events, err)
		}
		report.Runs = append(report.Runs, run)
	}
	return report, nil
}

func (o Event) user(ctx context.Context, start Starter, events int) (run EventRun, err error) {
	c, err := openClient(ctx, start)
	if err != nil {
		return EventRun{}, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	d := newDataset(shape{users: 1, events: events, facets: usualFacets, selected: usualSelected, values: usualValues})
	o.progress("loading a user with %d events", events)
	if err := loadHistories(ctx, c, d, 0); err != nil {
		return EventRun{}, err
	}
	m := &newEvents{r: newProcess(c, d), like: d.rows(0)}
	run.Events = events
	for _, way := range []struct {
		name string
		// before runs before each event, and is not measured.
		before func(context.Context) error
	}{
		{"computed", m.mark}, {"row", m.anotherProcess}, {"memory", func(context.Context) error { return nil }},
	} {
		o.progress("%d new events, %s", o.Repeat, way.name)
		measured, err := o.measure(ctx, c, m, way.before)
		if err != nil {
			return EventRun{}, err
		}
		measured.Way = way.name
		run.Ways = append(run.Ways, measured)
	}
	if n := m.computed(); n != int64(o.Repeat) {
		return EventRun{}, fmt.Errorf("%d events were computed, want %d", n, o.Repeat)
	}
	profile, err := m.r.engine.Read(ctx, m.r.app, d.user(0), 0)
	run.Values = profile.Total
	return run, err
}

// measure measures new events.
func (o Event) measure(ctx context.Context, c *client, m *newEvents,
	before func(context.Context) error) (EventWay, error) {
	var sum taken
	for range o.Repeat {
		if err := before(ctx); err != nil {
			return EventWay{}, err
		}
		one, err := c.measure(func() error { return m.apply(ctx) })
		if err != nil {
			return EventWay{}, err
		}
		sum.seconds, sum.cpu, sum.received = sum.seconds+one.seconds, sum.cpu+one.cpu, sum.received+one.received
		sum.server.Requests += one.server.Requests
		sum.server.RowsRead += one.server.RowsRead
	}
	n := float64(o.Repeat)
	return EventWay{
		CPUMillis: 1e3 * sum.cpu / n, Milliseconds: 1e3 * sum.seconds / n, Received: float64(sum.received) / n,
		Requests: float64(sum.server.Requests) / n, RowsRead: float64(sum.server.RowsRead) / n,
	}, nil
}

// newEvents sends new events of a user, each later than all before.
type newEvents struct {
	r     *historyReader
	like  []store.LogEvent // they get new times and IDs
	sent  int
	ended []*profile.Engine // earlier processes
}

// newProcess is a process that knows a strategy: users have profiles of it.
func newProcess(c *client, d *dataset) *historyReader {
	r := newHistoryReader(c, d, 0)
	r.app.StrategyVersion, r.app.ScoringVersion = 1, 1
	return r
}

func (m *newEvents) next() []store.LogEvent {
	e := m.like[m.sent%len(m.like)]
	m.sent++
	e.Time = m.r.d.window.Now - youngest + int64(m.sent)
	e.ID = fmt.Sprintf("new%08d", m.sent)
	return []store.LogEvent{e}
}

func (m *newEvents) apply(ctx context.Context) error {
	_, err := m.r.engine.Apply(ctx, m.r.app, m.next())
	return err
}

// mark has another event imported, so that the next one is computed.
func (m *newEvents) mark(ctx context.Context) error {
	_, err := m.r.engine.Import(ctx, m.r.app, m.next())
	return err
}

// anotherProcess has a process that has not seen the user apply the next event.
func (m *newEvents) anotherProcess(context.Context) error {
	m.ended = append(m.ended, m.r.engine)
	m.r = newProcess(m.r.c, m.r.d)
	return nil
}

// computed returns how many events were not added to a base.
func (m *newEvents) computed() int64 {
	n := int64(m.sent)
	for _, e := range append(m.ended, m.r.engine) {
		n -= e.Counters().Added.Load()
	}
	return n / 2 // each came after an import
}

// Print writes the report for people.
func (r EventReport) Print(out io.Writer) error {
	r.Machine.print(out, r.InProcess)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "events\tvalues\tnew event\tclient CPU ms\tms\tbytes read\trequests\trows read\t")
	for _, x := range r.Runs {
		for _, way := range x.Ways {
			fmt.Fprintf(w, "%d\t%d\t%s\t%.2f\t%.2f\t%.0f\t%.1f\t%.1f\t\n", x.Events, x.Values, way.Way, way.CPUMillis,
				way.Milliseconds,
				way.Received, way.Requests, way.RowsRead)
		}
	}
	return w.Flush()
}
