package linkpreview

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/profile/view"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// Process reads the log and links. Its place is the user that it reads, but it always starts from the beginning:
// what it has read is in memory alone.
func (w Work) Process(ctx context.Context, j job.Job, app config.App, shard job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	t := &task{Work: w, app: app, params: job.ParamsOf[Params](j), shard: shard, until: until, progress: progress,
		times: map[string][]int64{}, known: map[string]string{}}
	err := t.read(ctx)
	var refused *fault.Error
	if errors.As(err, &refused) {
		err = fmt.Errorf("%w: %w", job.ErrFailed, err)
	}
	if err != nil {
		return job.Progress{}, err
	}
	found, run := t.link()
	t.evidence, t.times, t.known = nil, nil, nil // the sample needs the room
	if found.Orders, err = t.orders(ctx, j.ID, run); err != nil {
		return job.Progress{}, fmt.Errorf("compare orders: %w", err)
	}
	result, err := json.Marshal(found)
	if err != nil {
		return job.Progress{}, fmt.Errorf("encode the links: %w", err)
	}
	p := t.soFar()
	p.Next, p.Done, p.Result = shard.To, true, string(result)
	return p, progress(p)
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

	evidence []evidence
	times    map[string][]int64 // of the events of the tokens with evidence (ms), in order
	known    map[string]string  // each known token once
	user     string             // of the last row
	own      []int64            // times of their events
	names    bool               // one of the events is evidence
}

// evidence is an event that names who had signed in under a token.
type evidence struct {
	user, known string
	time        int64 // ms
}

// stepRows is how many rows are read between two reports of progress.
const stepRows = 10_000

// read reads the log of the days.
func (t *task) read(ctx context.Context) error {
	since := t.params.since()
	rows := store.Range{From: t.shard.From, To: t.shard.To}
	err := t.Store.In(t.app.Region).Events.Log(t.app.ID, t.app.Log).ScanOriginals(ctx, rows, since, func(e store.Entry) error {
		t.counts.Events++
		if err := t.row(e); err != nil {
			t.counts.Faulty++
			if len(t.faults) < job.MaxFaults {
				t.faults = append(t.faults, fmt.Sprintf("%s: %v", e.Key(), err))
			}
		}
		if t.counts.Events%stepRows == 0 {
			return t.step(ctx)
		}
		return t.bound()
	})
	if err == nil {
		err = t.checkSchema(ctx)
	}
	t.endUser()
	return err
}

// bound returns the fault of days that have too many events.
func (t *task) bound() error {
	const fewer = ": ask for fewer days"
	switch {
	case t.counts.Events > t.params.MaxEvents:
		return fault.New(fault.Invalid, "the last %d days have more than %d events"+fewer, t.params.Days, t.params.MaxEvents)
	case len(t.evidence) > maxEvidence:
		return fault.New(fault.Invalid, "in the last %d days more than %d events name an authenticatedUserToken"+fewer,
			t.params.Days, maxEvidence)
	case len(t.known) > maxTokens:
		return fault.New(fault.Invalid, "in the last %d days more than %d users have signed in"+fewer, t.params.Days,
			maxTokens)
	case len(t.times) > maxTokens:
		return fault.New(fault.Invalid, "in the last %d days users have signed in under more than %d tokens"+fewer,
			t.params.Days, maxTokens)
	}
	return nil
}

// step reports the progress, and ends the task once its time is over.
func (t *task) step(ctx context.Context) error {
	if !t.Now().Before(t.until) {
		return fault.New(fault.Invalid, "the task's time ended after %d events: ask for fewer days", t.counts.Events)
	}
	if err := t.checkSchema(ctx); err != nil {
		return err
	}
	return t.progress(t.soFar())
}

// soFar returns the progress. The runner adds the counts to those of earlier attempts, and names the faults of
// these already: each attempt counts from the beginning.
func (t *task) soFar() job.Progress {
	faults := slices.DeleteFunc(slices.Clone(t.faults), func(f string) bool { return slices.Contains(t.shard.Faults, f) })
	return job.Progress{Next: t.user, Counts: job.Count(t.counts).Minus(t.shard.Counts), Faults: faults}
}

// checkSchema returns an error if the schemas of the log have changed since the task read the app: a migration
// removes the rows of the old one.
func (t *task) checkSchema(ctx context.Context) error {
	current, err := t.Config.App(ctx, t.app.ID)
	if err == nil && current.Log.Generation != t.app.Log.Generation {
		err = profile.ErrSchemaChanged
	}
	if err != nil {
		return fmt.Errorf("read the log of %s: %w", t.app.ID, err)
	}
	return nil
}

// authenticated is part of each original that names who had signed in.
var authenticated = []byte(`"authenticatedUserToken"`)

// row takes a row of the log. An error means that it is damaged.
func (t *task) row(e store.Entry) error {
	if e.Fault != nil {
		return e.Fault
	}
	if e.User != t.user {
		t.endUser()
		t.user = e.User
		t.counts.Users++
	}
	if e.Time > t.params.AsOf.UnixMilli() {
		return nil
	}
	t.own = append(t.own, e.Time)
	if !bytes.Contains(e.Original, authenticated) { // most have none, and take no decoding
		return nil
	}
	o, err := schema.ParseOriginal(e.Original)
	if err != nil {
		return err
	}
	event, err := o.Decode()
	if err != nil {
		return err
	}
	known := event.AuthenticatedUserToken
	if known == "" {
		return nil
	}
	if kept, ok := t.known[known]; ok {
		known = kept
	} else {
		t.known[known] = known
	}
	t.names = true
	t.evidence = append(t.evidence, evidence{e.User, known, e.Time})
	return nil
}

// endUser keeps the times of a user's events if one of them is evidence.
func (t *task) endUser() {
	if t.names {
		t.times[t.user] = slices.Clone(t.own)
	}
	t.own, t.names = t.own[:0], false
}

// link links by the evidence.
func (t *task) link() (api.LinkPreview, *links.DryRun) {
	slices.SortStableFunc(t.evidence, func(a, b evidence) int { return cmp.Compare(a.time, b.time) })
	run := links.NewDryRun(time.Duration(t.params.Lookback) * time.Millisecond)
	for _, e := range t.evidence {
		run.Take(e.user, links.Evidence{Known: e.known, Time: e.time, Receipt: e.time})
	}
	result := api.LinkPreview{LinkCounts: view.Links(run)}
	for token, entries := range run.Linked() {
		times := t.times[token]
		for _, e := range entries {
			from, _ := slices.BinarySearch(times, e.Since)
			to, _ := slices.BinarySearch(times, e.To)
			result.GainedEvents += int64(to - from)
		}
	}
	return result, run
}
