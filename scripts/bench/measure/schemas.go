package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Schemas measures how all profiles are built from each schema.
type Schemas struct {
	Scenarios                []string
	Schemas                  []string
	Counts                   []int  // events of all users together, ascending
	Scale                    int    // factor for users and events
	Facets, Values, Selected int    // as in Recompute
	Repeat                   int    // measurements; the median counts
	Out                      string // directory for results.csv and a plot of each scenario; "": no files
	Common
}

// maxEvents exceeds what the memory of a server holds.
const maxEvents = 1_000_000_000

// Check returns a FlagError for a value out of range.
func (o Schemas) Check() error {
	if err := o.checkSizes(); err != nil {
		return err
	}
	if err := checkNames("--schemas", o.Schemas, CompareSchemas); err != nil {
		return err
	}
	if err := checkNames("--scenarios", o.Scenarios, Scenarios()); err != nil {
		return err
	}
	for _, name := range o.Scenarios {
		s, _ := findScenario(name)
		for _, n := range o.Counts {
			switch users, _ := s.size(n, o.Scale); {
			case users == 0:
				return flagf("--counts %d: scenario %s needs %d or more events", n, name, max(s.users, s.events))
			case users > maxUsers:
				return flagf("--scale %d: scenario %s would have more than %d users", o.Scale, name, maxUsers)
			}
		}
	}
	return Recompute{Users: 1, Events: []int{1}, Facets: o.Facets, Values: o.Values, Selected: o.Selected,
		Repeat: o.Repeat, Readers: Readers}.Check()
}

func (o Schemas) checkSizes() error {
	if o.Scale < 1 || o.Scale > maxUsers {
		return flagf("--scale %d: must be 1 to %d", o.Scale, maxUsers)
	}
	if len(o.Counts) == 0 {
		return flagf("--counts: name one or more numbers of events")
	}
	for i, n := range o.Counts {
		switch {
		case n < 1 || n > maxEvents/o.Scale:
			return flagf("--counts %d: must be 1 to %d", n, maxEvents/o.Scale)
		case i > 0 && n <= o.Counts[i-1]:
			return flagf("--counts %d: must be more than %d before it", n, o.Counts[i-1])
		}
	}
	return nil
}

// Run measures. It fails without a report if a profile is wrong.
func (o Schemas) Run(ctx context.Context, start Starter) (SchemasReport, error) {
	if err := o.Check(); err != nil {
		return SchemasReport{}, err
	}
	if o.Out != "" { // fail before measuring
		if err := os.MkdirAll(o.Out, 0o755); err != nil {
			return SchemasReport{}, fmt.Errorf("make the directory of --out: %w", err)
		}
	}
	report := SchemasReport{Machine: machine(), Config: o.config()}
	for _, name := range o.Scenarios {
		s, _ := findScenario(name)
		for _, n := range o.Counts {
			users, events := s.size(n, o.Scale)
			d := newDataset(shape{users: users, events: events, facets: o.Facets, selected: o.Selected, values: o.Values})
			results, err := o.measureSize(ctx, start, name, d)
			if err != nil {
				return SchemasReport{}, fmt.Errorf("scenario %s, %d users x %d events: %w", name, users, events, err)
			}
			report.Results = append(report.Results, results...)
		}
	}
	if o.Out != "" {
		err := report.write(o.Out)
		return report, err
	}
	return report, nil
}

// measureSize measures all schemas with one data set.
func (o Schemas) measureSize(ctx context.Context, start Starter, scenario string, d *dataset) ([]SchemaResult, error) {
	j, err := newJudge(ctx, d)
	if err != nil {
		return nil, err
	}
	var results []SchemaResult
	for _, t := range schemaTables {
		names := named(t.readers, o.Schemas)
		if len(names) == 0 {
			continue
		}
		o.progress("%s, %d users x %d events: %s", scenario, d.users, d.shape.events, strings.Join(names, ", "))
		more, err := o.measureTables(ctx, start, t, names, d, j)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", names[0], err)
		}
		results = append(results, more...)
	}
	for i := range results {
		results[i].Scenario = scenario
	}
	return results, nil
}

// measureTables loads tables into a server of their own, measures their size, and
// builds all profiles with each of their readers.
func (o Schemas) measureTables(ctx context.Context, start Starter, t tables, names []string, d *dataset,
	j *judge) (results []SchemaResult, err error) {
	c, err := openClient(ctx, start)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	load, err := c.measure(func() error { return t.load(ctx, c, d, 0) })
	if err != nil {
		return nil, fmt.Errorf("load the tables: %w", err)
	}
	h, err := c.hold(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		taken, err := o.build(ctx, t.open(name, c, d, 0), c, d, j)
		if err != nil {
			return nil, fmt.Errorf("build profiles, %s: %w", name, err)
		}
		results = append(results, schemaResult(name, d, taken, load, h))
	}
	return results, nil
}

// build builds and writes all profiles once and checks them. This also warms up
// connection, caches and heap. Then it measures building without writing.
func (o Schemas) build(ctx context.Context, r reader, c *client, d *dataset, j *judge) (taken, error) {
	if err := recompute(ctx, r, newTarget(c, true), j); err != nil {
		return taken{}, err
	}
	if err := j.stored(ctx, c, d); err != nil {
		return taken{}, err
	}
	return c.more(o.Repeat, func() error { return recompute(ctx, r, newTarget(c, false), j) })
}

// named returns those of names that are wanted, in their order.
func named(names, wanted []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(wanted, name) })
}

// checkNames returns a FlagError unless each name is known and occurs once.
func checkNames(flag string, names, known []string) error {
	if len(names) == 0 {
		return flagf("%s: name one or more of %s", flag, strings.Join(known, ", "))
	}
	for i, name := range names {
		if !slices.Contains(known, name) {
			return flagf("%s %q: there are %s", flag, name, strings.Join(known, ", "))
		}
		if slices.Contains(names[:i], name) {
			return flagf("%s: %s is named twice", flag, name)
		}
	}
	return nil
}
