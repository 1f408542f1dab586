package daterows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/store"
)

// The parts of a job: the objects, and then the date rows.
const (
	objects = "objects"
	rows    = "rows"
)

const (
	// partRows is how many rows a task reads between two checkpoints.
	partRows = 500
	// grace is the age from which a date row without its object is rubbish. A writer of
	// a younger one may still be about to write the object; none takes as long.
	grace = 10 * time.Minute
)

// work inserts and deletes date rows.
type work struct {
	job.Plain
	*job.Runner
	store    *store.Store
	settings Settings
	partRows int
}

var _ job.Continued = &work{}

// Obsolete ends a backfill that no feed needs any more.
func (*work) Obsolete(j job.Job, app config.App) string {
	if index := job.ParamsOf[Params](j).Index; j.Kind == backfill && len(app.Dates[index]) == 0 {
		return fmt.Sprintf("no feed orders the objects of index %s any more", index)
	}
	return ""
}

// Following returns a shard for each part.
func (*work) Following(_ context.Context, _ job.Job, last job.Shard) ([]job.Shard, error) {
	switch last.Part {
	case rows:
		return nil, nil
	case objects:
		return []job.Shard{{Part: rows}}, nil
	}
	return []job.Shard{{Part: objects}, {Part: rows}}, nil
}

// place is where a shard continues, and what it has found up to there. It is written
// as the key and the numbers, with a comma between them.
type place struct {
	after   string
	undated map[string]int64 // objects by attribute
}

func (p place) next() (string, error) {
	undated, err := json.Marshal(p.undated)
	return url.QueryEscape(p.after) + "," + string(undated), err
}

func placeOf(shard job.Shard) (p place, err error) {
	p.undated = map[string]int64{}
	if shard.Next == "" {
		return p, nil
	}
	after, undated, ok := strings.Cut(shard.Next, ",")
	if !ok {
		return p, fmt.Errorf("place %q is not of the form key,numbers", shard.Next)
	}
	if p.after, err = url.QueryUnescape(after); err == nil {
		err = json.Unmarshal([]byte(undated), &p.undated)
	}
	return p, err
}

// Process works from a place up to the end of the objects, or of the date rows.
func (w *work) Process(ctx context.Context, j job.Job, _ config.App, shard job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	at, err := placeOf(shard)
	if err != nil {
		return job.Progress{}, fmt.Errorf("%w: %w", job.ErrFailed, err)
	}
	index, do := job.ParamsOf[Params](j).Index, w.insert
	if shard.Part == rows {
		do = w.sweep
	}
	var p job.Progress
	var counts Counts
	for {
		// Another feed may have named another attribute in the meantime.
		app, err := w.Config.App(ctx, j.App)
		if err != nil {
			return p, err
		}
		done, err := do(ctx, j.App, store.DatedPart{
			Index: index, Attributes: app.Dates.Of(index), After: at.after, Before: w.Clock().Add(-grace), Limit: w.partRows,
		}, &counts)
		if err != nil {
			return p, err
		}
		at.after = done.Last
		for attribute, n := range done.Undated {
			at.undated[attribute] += n
			counts.Undated += n
		}
		if p.Next, err = at.next(); err != nil {
			return p, err
		}
		p.Counts, p.Done = job.Count(counts), done.Done
		p.Faults = append(p.Faults, done.Faults...)
		p.Faults = p.Faults[:min(len(p.Faults), job.MaxFaults)]
		if p.Done {
			undated, err := json.Marshal(at.undated)
			p.Result = string(undated)
			return p, errors.Join(err, progress(p))
		}
		if err := progress(p); err != nil || !w.Now().Before(until) {
			return p, err
		}
	}
}

func (w *work) insert(ctx context.Context, app string, part store.DatedPart,
	counts *Counts) (store.DatedRepair, error) {
	settings, err := w.settings.IndexSettings(ctx, app, part.Index)
	if err != nil && !errors.Is(err, config.ErrNotFound) {
		return store.DatedRepair{}, fmt.Errorf("read settings of index %s/%s: %w", app, part.Index, err)
	}
	done, err := w.store.Catalog.InsertDated(ctx, app, part, func(o store.Object) (store.ObjectFilters, error) {
		return fresh(o, settings)
	})
	counts.Objects += int64(done.Read)
	counts.Inserted += int64(done.Changed)
	counts.Faulty += int64(done.Faulty)
	return done, err
}

// fresh returns the filters of an object under the settings of now.
func fresh(o store.Object, settings catalog.Settings) (store.ObjectFilters, error) {
	if o.Filters.SettingsVersion == settings.Version {
		return o.Filters, nil
	}
	var filters []event.Filter
	filters, err := catalog.Filters(o.Record, settings)
	return store.ObjectFilters{SettingsVersion: settings.Version, Filters: filters}, err
}

func (w *work) sweep(ctx context.Context, app string, part store.DatedPart, counts *Counts) (store.DatedRepair, error) {
	done, err := w.store.Catalog.SweepDated(ctx, app, part)
	counts.Rows += int64(done.Read)
	counts.Deleted += int64(done.Changed)
	return done, err
}

// Undated returns how many objects of a job's index hold no readable date in an
// attribute. False: the job has not read all objects, or did not look at the attribute.
func (r *Runner) Undated(ctx context.Context, j job.Job, attribute string) (int64, bool, error) {
	shard, err := r.Jobs.Shard(ctx, j.App, j.ID, 0)
	if errors.Is(err, job.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read the objects without a date of %s: %w", j.ID, err)
	}
	var undated map[string]int64
	if shard.State != job.ShardDone || json.Unmarshal([]byte(shard.Result), &undated) != nil {
		return 0, false, nil
	}
	return undated[attribute], true, nil
}
