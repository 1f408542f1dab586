package backtests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// Process reads and judges. Its place is the user that it reads next, but it
// always starts from the beginning: what it has read is in memory alone.
func (w Work) Process(ctx context.Context, j job.Job, app config.App, shard job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	t := &task{Work: w, app: app, params: job.ParamsOf[Params](j), shard: shard, until: until, progress: progress}
	result, err := t.run(ctx)
	var refused *fault.Error
	if errors.As(err, &refused) {
		err = fmt.Errorf("%w: %w", job.ErrFailed, err)
	}
	if err != nil {
		return job.Progress{}, err
	}
	text, err := json.Marshal(result)
	if err != nil {
		return job.Progress{}, fmt.Errorf("encode the report: %w", err)
	}
	if len(text) > job.MaxResult {
		return job.Progress{}, fmt.Errorf("%w: the report has %d bytes, at most %d are kept", job.ErrFailed,
			len(text), job.MaxResult)
	}
	p := job.Progress{Next: shard.To, Done: true, Counts: t.counted(), Faults: t.faults, Result: string(text)}
	return p, t.progress(p)
}

// task is one call of Process.
type task struct {
	Work
	app      config.App
	params   Params
	shard    job.Shard
	until    time.Time
	progress func(job.Progress) error
	counts   Counts
	faults   []string
}

// counted returns the counts for the runner, which adds them to those of earlier
// attempts: each attempt counts from the beginning.
func (t *task) counted() job.Counts {
	return job.Count(t.counts).Minus(t.shard.Counts)
}

// errTooMany means that the app has more events than the job may read.
var errTooMany = errors.New("too many events")

func (t *task) run(ctx context.Context) (Result, error) {
	given, err := t.given(ctx, t.app.ID, t.params)
	if err != nil {
		return Result{}, err
	}
	objects, err := t.objects(ctx, given)
	if err != nil {
		return Result{}, err
	}
	log, share, err := t.readSome(ctx, given, objects)
	if err != nil {
		return Result{}, err
	}
	if t.params.Trials > 0 {
		result, err := t.tune(ctx, log, given[0].Strategy)
		result.Share = share
		return result, err
	}
	report, err := t.judge(ctx, log, given)
	if err != nil {
		return Result{}, err
	}
	return Result{Report: report.API(), Share: share}, nil
}

// judge judges the strategies, and ends early once the job has ended.
func (t *task) judge(ctx context.Context, log *backtest.Log, given []backtest.Given) (*backtest.Report, error) {
	judging, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	report, err := log.Judge(judging, given, t.params.options(), func(what string, _ float64) {
		if err := t.progress(job.Progress{Next: "judging " + what, Counts: t.counted()}); err != nil {
			stop(err)
		}
	})
	if cause := context.Cause(judging); err != nil && cause != nil {
		err = cause
	}
	return report, err
}

// maxReadings is how often a task reads the log before it gives up.
const maxReadings = 6

// readSome reads the events of all users, or of the share of them that fits.
func (t *task) readSome(ctx context.Context, given []backtest.Given,
	objects []backtest.Object) (*backtest.Log, float64, error) {
	share := 1.0
	for range maxReadings {
		log, err := t.read(ctx, given, objects, share)
		if !errors.Is(err, errTooMany) {
			return log, share, err
		}
		half := share / 2
		if t.counts.Users > 0 {
			// Some less than the limit, since users differ.
			users := max(float64(t.shard.PlannedUsers), float64(t.counts.Users)/share)
			all := float64(t.counts.Events) * users / float64(t.counts.Users)
			half = min(half, 0.9*float64(t.params.MaxEvents)/all)
		}
		share = half
	}
	return nil, 0, fault.New(fault.Invalid, "the log holds too many events: even a small sample of the users has "+
		"more than %d, "+
		"so a few users have most of them", t.params.MaxEvents)
}

// objects returns the objects of the index as its settings describe them, with
// the dates that the rankings go by.
func (t *task) objects(ctx context.Context, given []backtest.Given) (objects []backtest.Object, err error) {
	settings, err := t.Config.IndexSettings(ctx, t.app.ID, t.params.Index)
	if err != nil && !errors.Is(err, config.ErrNotFound) {
		return nil, fmt.Errorf("read settings of index %s/%s: %w", t.app.ID, t.params.Index, err)
	}
	attributes := backtest.Dates(given)
	if t.params.Trials > 0 { // a search may give freshness a weight
		attributes = []string{given[0].Strategy.RankingOrDefault().Freshness.Attribute}
	}
	var incomplete []int // places of objects whose record is needed
	err = t.Store.Catalog.ScanObjectFilters(ctx, t.app.ID, t.params.Index, func(id string, f store.ObjectFilters) error {
		if len(attributes) > 0 || f.SettingsVersion != settings.Version {
			incomplete = append(incomplete, len(objects))
		}
		objects = append(objects, backtest.Object{ID: id, Filters: f.Filters})
		return nil
	})
	if err != nil {
		return nil, err
	}
	const batch = 500
	for some := range slices.Chunk(incomplete, batch) {
		if err := t.complete(ctx, objects, some, attributes, settings); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// complete sets the filters and the dates of some objects from their records.
func (t *task) complete(ctx context.Context, objects []backtest.Object, some []int, attributes []string,
	settings catalog.Settings) error {
	refs := make([]store.ObjectRef, len(some))
	for i, at := range some {
		refs[i] = store.ObjectRef{Index: t.params.Index, ID: objects[at].ID}
	}
	records, err := t.Store.Catalog.ReadRecords(ctx, t.app.ID, refs)
	if err != nil {
		return err
	}
	for i, at := range some {
		record, ok := records[refs[i]]
		if !ok {
			continue // deleted since
		}
		if objects[at].Filters, err = catalog.Filters(record, settings); err != nil {
			return fmt.Errorf("filters of object %q: %w", objects[at].ID, err)
		}
		objects[at].Dates = map[string]int64{}
		for _, attribute := range attributes {
			if ms, ok := catalog.Date(record, attribute); ok {
				objects[at].Dates[attribute] = ms
			}
		}
	}
	return nil
}

// read reads the events of a share of the users. It returns errTooMany if they
// are more than the job may read.
func (t *task) read(ctx context.Context, given []backtest.Given, objects []backtest.Object,
	share float64) (*backtest.Log, error) {
	log, err := backtest.NewLog(t.params.Index, objects)
	if err != nil {
		return nil, err
	}
	options := profile.SweepOptions{AsOf: t.params.AsOf, Strategy: affinity.Compile(scored(given)), Counts: true,
		Until: t.until}
	if share < 1 {
		options.Only = func(user string) bool { return backtest.Selects(user, share) }
	}
	user, ordinal, events := "", 0, int64(0)
	t.counts, t.faults = Counts{}, nil
	add := func(token string, e affinity.Event) error {
		// A group of users may have any number.
		if events++; events > t.params.MaxEvents {
			return errTooMany
		}
		if token != user {
			user, ordinal = token, 0
		}
		ordinal++
		log.Add(backtest.Event{
			User: token, Time: e.Time, ID: fmt.Sprintf("%012d", ordinal), // the order of the log
			Type: e.Type, Name: e.Name, Index: e.Index, ObjectIDs: e.ObjectIDs, Filters: filtersOf(e),
		})
		return nil
	}
	for _, region := range t.app.Everywhere() {
		if err := t.readRegion(ctx, region, options, add); err != nil {
			return nil, err
		}
	}
	return log, nil
}

// readRegion reads the events of the users of a region. The shard lies in the region of the app, so it names nobody of
// another one.
func (t *task) readRegion(ctx context.Context, region string, o profile.SweepOptions,
	add func(token string, e affinity.Event) error) error {
	app := t.app.In(region)
	app.RetentionDays = t.params.RetentionDays
	before, faults := t.counts, t.faults
	end, err := t.Source.SweepObjects(ctx, app, store.Range{From: t.shard.From, To: t.shard.To}, o, add,
		func(p profile.SweepProgress) error {
			t.counts = Counts{Users: before.Users + p.Users, Events: before.Events + p.Events, Faulty: before.Faulty + p.Faulty}
			if region != t.app.Region {
				p.Next = region
				if p.Faulty > 0 {
					p.Faults = []string{"there are users in " + region + " whose events could not be read"}
				}
			}
			t.faults = slices.DeleteFunc(slices.Concat(faults, p.Faults), func(f string) bool {
				return slices.Contains(t.shard.Faults, f) // an earlier attempt has named it
			})
			return t.progress(job.Progress{Next: p.Next, Counts: t.counted(), Faults: t.faults})
		})
	if err == nil && !end.Done {
		advice := "the log is too large"
		if t.params.MaxEvents > MaxEvents {
			advice = "judge without all"
		}
		return fault.New(fault.Invalid, "the task's time ended after %d events: %s", t.counts.Events, advice)
	}
	if err != nil && region != t.app.Region {
		err = job.Abroad(region, err)
	}
	return err
}

// filtersOf returns the filters of an event by filters. It names each once.
func filtersOf(e affinity.Event) (filters []event.Filter) {
	for _, n := range e.Counts {
		filters = append(filters, event.Filter{Facet: n.Facet, Value: n.Value})
	}
	return filters
}

// scored returns a strategy that scores each kind of event and each facet that a
// given one scores.
func scored(given []backtest.Given) (all strategy.Strategy) {
	kinds, facets := map[affinity.Pair]bool{}, map[string]bool{}
	for _, g := range given {
		for _, e := range g.Strategy.EventsScoring {
			if pair := (affinity.Pair{Type: string(e.EventType), Name: e.EventName}); e.Score > 0 && !kinds[pair] {
				kinds[pair] = true
				all.EventsScoring = append(all.EventsScoring, e)
			}
		}
		for _, f := range g.Strategy.FacetsScoring {
			if f.Score > 0 && !facets[f.FacetName] {
				facets[f.FacetName] = true
				all.FacetsScoring = append(all.FacetsScoring, f)
			}
		}
	}
	return all
}
