// Package measure measures the engine: recomputes from histories against
// recomputes from the log and from the published narrow rows, reads that compute
// a profile, the memory of a recompute, the backfill of a migration, and the
// schemas of the log.
//
// It is separate from the command so that tests can call each measurement. A
// measurement makes a data set from a seed, starts an in-process Bigtable in a
// process of its own (so that its CPU and memory are not counted), fills it, and
// runs the engine's code against it, beside readers that exist for comparison
// only. All data lives in that Bigtable and ends with it. benchmarks.md and
// schemas.md of functions/docs/design explain the methods and hold results.
package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/score/schema"
)

// The readers that can be measured.
const (
	Narrow     = "narrow"      // published schema, encoding/json
	NarrowFast = "narrow-fast" // the same rows, read by the engine
	Wide       = "wide"        // the engine's log, filtered by the server
	WideClient = "wide-client" // the engine's log, filtered by the client
	History    = "history"     // the engine's recompute from histories
)

// Readers lists all readers in the order of the report.
var Readers = []string{Narrow, NarrowFast, Wide, WideClient, History}

// appID is the app of the data set.
const appID = "bench"

// Recompute measures recomputes of all profiles by different readers, for users with
// few events and with many, and for the users of real shops.
type Recompute struct {
	Users            int   // 0: as many as have usualTotal events
	Events           []int // per user, over 90 days: a data set for each
	Facets, Selected int   // facets stored, and how many of them are scored
	Values           int   // maximum values per facet and event
	Tail             int   // newest events of each user outside the history
	Repeat           int   // measurements; the median counts
	Readers          []string
	Floor            bool   // measure the floor of each reader as well
	Data             string // directory of real data sets; "": none
	CPUProfile       string // file for a CPU profile of the recomputes
	Common
}

// usualTotal is the number of events of all users of a data set whose users are not
// given: so that users with few events and users with many take a similar time.
const usualTotal = 140_000

// Bounds of the options.
const (
	maxUsers  = 10_000_000 // tokens have so many digits
	maxFacets = 100        // of a strategy
	maxValues = 20
)

// A FlagError is a value out of range. It names the flag.
type FlagError struct{ message string }

// Error is the message.
func (e FlagError) Error() string { return e.message }

func flagf(format string, args ...any) error { return FlagError{fmt.Sprintf(format, args...)} }

// Check returns a FlagError for a value out of range.
func (o Recompute) Check() error {
	switch {
	case o.Users < 0 || o.Users > maxUsers:
		return flagf("--users %d: must be 1 to %d, or 0 for as many as have %d events together", o.Users, maxUsers,
			usualTotal)
	case len(o.Events) == 0:
		return flagf("--events: name one or more numbers of events of a user")
	case o.Facets < 1 || o.Facets > maxFacets:
		return flagf("--facets %d: must be 1 to %d", o.Facets, maxFacets)
	case o.Values < 1 || o.Values > maxValues:
		return flagf("--values %d: must be 1 to %d", o.Values, maxValues)
	case o.Selected < 1 || o.Selected > o.Facets:
		return flagf("--selected %d: must be 1 to the %d facets there are", o.Selected, o.Facets)
	case o.Tail < 0:
		return flagf("--tail %d: must be 0 or more", o.Tail)
	case o.Repeat < 1:
		return flagf("--repeat %d: must be 1 or more", o.Repeat)
	}
	for i, n := range o.Events {
		switch {
		case n < 1:
			return flagf("--events %d: must be 1 or more", n)
		case o.Tail > n:
			return flagf("--tail %d: must be 0 to the %d events a user has", o.Tail, n)
		case slices.Contains(o.Events[:i], n):
			return flagf("--events: %d is named twice", n)
		}
	}
	return checkNames("--readers", o.Readers, Readers)
}

// shape is the data set of users with that many events.
func (o Recompute) shape(events int) shape {
	users := o.Users
	if users == 0 {
		users = max(1, usualTotal/events)
	}
	return shape{users: users, events: events, facets: o.Facets, selected: o.Selected, values: o.Values}
}

// reader is one way to recompute all profiles.
type reader interface {
	// floor receives the same rows as recompute and decodes nothing.
	floor(ctx context.Context) error
	// recompute computes all profiles and passes them to the target.
	recompute(ctx context.Context, t *target) error
}

// tables are what some readers read. tail is how many of a user's newest events are
// outside the history.
type tables struct {
	readers []string
	load    func(ctx context.Context, c *client, d *dataset, tail int) error
	open    func(name string, c *client, d *dataset, tail int) reader
}

var layouts = []tables{
	{[]string{Narrow, NarrowFast}, loadPublished, openPublished},
	logTables(schema.Default(), Wide, WideClient),
	historyTables,
}

// Run measures. It fails without a report if a reader computes a wrong profile.
func (o Recompute) Run(ctx context.Context, start Starter) (Report, error) {
	if err := o.Check(); err != nil {
		return Report{}, err
	}
	report := Report{Machine: machine(), Config: o.config()}
	for _, n := range o.Events {
		if err := o.measureSet(ctx, start, newDataset(o.shape(n)), &report); err != nil {
			return Report{}, fmt.Errorf("%d events a user: %w", n, err)
		}
	}
	if o.Data == "" {
		return report, nil
	}
	names := realSets(o.Data)
	if len(names) == 0 {
		report.Absent = o.Data
	}
	for _, name := range names {
		d, err := openReal(o.Data, name)
		if err != nil {
			return Report{}, err
		}
		if err := o.measureSet(ctx, start, d, &report); err != nil {
			return Report{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return report, nil
}

// measureSet measures all readers with one data set.
func (o Recompute) measureSet(ctx context.Context, start Starter, d *dataset, report *Report) error {
	set := d.set()
	o.progress("%s: expected profiles", set)
	judge, err := newJudge(ctx, d)
	if err != nil {
		return err
	}
	for _, l := range layouts {
		results, err := o.measureLayout(ctx, start, l, d, judge)
		if err != nil {
			return err
		}
		set.Results = append(set.Results, results...)
	}
	set.compare()
	report.Sets = append(report.Sets, set)
	return nil
}

// measureLayout loads tables into a server of their own and runs their readers.
func (o Recompute) measureLayout(ctx context.Context, start Starter, l tables, d *dataset,
	j *judge) (results []Result, err error) {
	names := named(l.readers, o.Readers)
	if len(names) == 0 {
		return nil, nil
	}
	c, err := openClient(ctx, start)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	o.progress("%s: loading", strings.Join(names, ", "))
	began := time.Now()
	if err := l.load(ctx, c, d, o.Tail); err != nil {
		return nil, fmt.Errorf("load the tables of %s: %w", names[0], err)
	}
	load := time.Since(began)
	for _, name := range names {
		two, err := o.measureReader(ctx, name, l.open(name, c, d, o.Tail), c, d, j)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for i := range two {
			two[i].LoadSeconds = load.Seconds()
		}
		results = append(results, two...)
	}
	return results, nil
}

// measureReader measures the recompute without and with writes, and the floor if it is
// wanted, and checks the written profiles.
func (o Recompute) measureReader(ctx context.Context, name string, r reader, c *client, d *dataset,
	j *judge) ([]Result, error) {
	var floor taken
	var err error
	if o.Floor {
		o.progress("%s: floor", name)
		if floor, err = c.repeat(o.Repeat, func() error { return r.floor(ctx) }); err != nil {
			return nil, fmt.Errorf("scan: %w", err)
		}
	}
	stop, err := o.profile(name)
	if err != nil {
		return nil, err
	}
	var results []Result
	for _, writes := range []bool{false, true} {
		o.progress("%s: recompute, writes %t", name, writes)
		taken, err := c.repeat(o.Repeat, func() error { return recompute(ctx, r, newTarget(c, writes), j) })
		if err != nil {
			return nil, errors.Join(fmt.Errorf("recompute: %w", err), stop())
		}
		results = append(results, result(name, writes, d, floor, taken))
	}
	if err := stop(); err != nil {
		return nil, err
	}
	return results, j.stored(ctx, c, d)
}

// recompute computes all profiles and checks their sums.
func recompute(ctx context.Context, r reader, t *target, j *judge) error {
	if err := r.recompute(ctx, t); err != nil {
		return err
	}
	return j.total(t)
}

// machine describes this machine and the date.
func machine() Machine {
	return Machine{CPUs: runtime.NumCPU(), Processor: processor(), GoVersion: runtime.Version(),
		Date: time.Now().UTC().Format(time.DateOnly)}
}
