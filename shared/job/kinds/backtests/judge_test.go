package backtests_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/backtests"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	viewed   = `{"eventsScoring":[{"eventName":"a","eventType":"view","score":1}],"facetsScoring":[{"facetName":"brand","score":1}],"personalizationImpact":50}`
	users    = 200
	each     = 10 // events of a user
	capacity = 500
)

// source has events of many users, each a group of its own.
type source struct {
	ends   bool   // before its end
	robot  string // a user with twice as many events as a job may read
	sweeps int
}

func (s *source) SweepObjects(_ context.Context, _ config.App, _ store.Range, o profile.SweepOptions,
	fn func(string, affinity.Event) error, progress func(profile.SweepProgress) error) (p profile.SweepProgress, err error) {
	s.sweeps++
	for u := range users {
		user, n := fmt.Sprintf("user-%03d", u), each
		if user == s.robot {
			n = 2 * capacity
		}
		if o.Only != nil && !o.Only(user) {
			continue
		}
		for i := range n {
			err := fn(user, affinity.Event{
				Time: int64(1_700_000_000_000 + i*1000 + u), Type: event.View, Name: "a", Index: "shoes", ObjectIDs: []string{fmt.Sprint((u + i*i) % 30)},
			})
			if err != nil {
				return p, err
			}
		}
		p.Users, p.Events, p.Next = p.Users+1, p.Events+int64(n), user
		if err := progress(p); err != nil {
			return p, err
		}
		if s.ends {
			return p, nil
		}
	}
	p.Next, p.Done = "", true
	return p, progress(p)
}

// configured says that brand is a facet, which the stored filters do not know yet.
// It has version 1 of the strategy.
type configured struct{}

func (configured) IndexSettings(context.Context, string, string) (catalog.Settings, error) {
	return catalog.Settings{AttributesForFaceting: []string{"brand"}, Version: 2}, nil
}

func (configured) StrategyVersion(_ context.Context, _ string, version int64) (strategy.Strategy, error) {
	if version != 1 {
		return strategy.Strategy{}, config.ErrNotFound
	}
	return strategy.Decode([]byte(viewed))
}

func putObjects(t *testing.T, to *store.Store) {
	t.Helper()
	var objects []store.Object
	for i := range 30 {
		record := fmt.Sprintf(`{"objectID":"%d","brand":"b%d"}`, i, i%4)
		objects = append(objects, store.Object{ID: fmt.Sprint(i), Record: []byte(record), Filters: store.ObjectFilters{SettingsVersion: 1}})
	}
	must.Succeed(t, to.Catalog.PutObjects(t.Context(), "demo", "shoes", objects))
}

// process runs a job with these bounds.
func process(t *testing.T, s *source, p backtests.Params) (result backtests.Result, counts job.Counts, err error) {
	t.Helper()
	w := backtests.Work{Store: storetest.New(t), Source: s, Config: configured{}, Now: time.Now}
	putObjects(t, w.Store)
	p.Index, p.Names = "shoes", []string{"s"}
	if p.Strategies == nil {
		p.Strategies = []string{viewed}
	}
	progress, err := w.Process(t.Context(), job.Job{Params: p}, config.App{ID: "demo"}, job.Shard{PlannedUsers: users}, time.Time{},
		func(job.Progress) error { return nil })
	if err != nil {
		return result, counts, err
	}
	must.Succeed(t, json.Unmarshal([]byte(progress.Result), &result))
	return result, progress.Counts, nil
}

func TestTooManyEventsAreSampled(t *testing.T) {
	whole, _, err := process(t, &source{}, backtests.Params{MaxEvents: users * each})
	must.Succeed(t, err)
	if whole.Share != 1 || whole.Report.Cases != users {
		t.Errorf("share %g, %d cases; want all %d", whole.Share, whole.Report.Cases, users)
	}
	s := &source{}
	sampled, counts, err := process(t, s, backtests.Params{MaxEvents: capacity})
	must.Succeed(t, err)
	if sampled.Share >= 1 || counts["events"] > capacity || counts["events"] < capacity/2 || s.sweeps != 2 {
		t.Errorf("share %g, %d events in %d sweeps; want at most %d", sampled.Share, counts["events"], s.sweeps, capacity)
	}
	again, _, err := process(t, &source{}, backtests.Params{MaxEvents: capacity})
	if err != nil || again.Report.Cases != sampled.Report.Cases || again.Report.Results[4] != sampled.Report.Results[4] {
		t.Errorf("another sample of the same log has %+v, want %+v; error %v", again.Report, sampled.Report, err)
	}
}

// A sample that is still too large is halved until it leaves the robot out. A
// robot in every sample is said in words, and no attempt follows.
func TestRobotsAreLeftOut(t *testing.T) {
	robots := map[bool]string{} // by whether every sample holds it
	for u := range users {
		user := fmt.Sprintf("user-%03d", u)
		if backtest.Selects(user, 0.2) && !backtest.Selects(user, 0.1) {
			robots[false] = user
		}
		if backtest.Selects(user, 1.0/128) {
			robots[true] = user
		}
	}
	if len(robots) != 2 {
		t.Fatalf("users are no robots of both kinds: %v", robots)
	}
	s := &source{robot: robots[false]}
	sampled, counts, err := process(t, s, backtests.Params{MaxEvents: capacity})
	if err != nil || sampled.Share >= 1 || counts["events"] > capacity {
		t.Errorf("share %g, %d events in %d sweeps, error %v; want at most %d", sampled.Share, counts["events"], s.sweeps, err, capacity)
	}
	s = &source{robot: robots[true]}
	_, _, err = process(t, s, backtests.Params{MaxEvents: capacity})
	if !errors.Is(err, job.ErrFailed) || !strings.Contains(err.Error(), "too many events") {
		t.Errorf("a robot in every sample, %d sweeps: %v", s.sweeps, err)
	}
}

// Settings of the index that are newer than its objects count.
func TestFiltersFollowSettings(t *testing.T) {
	result, _, err := process(t, &source{}, backtests.Params{MaxEvents: users * each, Within: "brand", Protocol: string(backtest.Last)})
	if err != nil || result.Report.Within == nil || result.Report.Within.Cases == 0 {
		t.Errorf("within brand: %+v, error %v", result.Report.Within, err)
	}
}

func TestFailures(t *testing.T) {
	_, _, err := process(t, &source{ends: true}, backtests.Params{MaxEvents: users * each})
	if !errors.Is(err, job.ErrFailed) || !strings.Contains(err.Error(), "time ended after 10 events: the log") {
		t.Errorf("a task whose time ends: %v", err)
	}
	_, _, err = process(t, &source{ends: true}, backtests.Params{MaxEvents: backtests.MaxAllEvents})
	if !errors.Is(err, job.ErrFailed) || !strings.Contains(err.Error(), "judge without all") {
		t.Errorf("a task of a request with all whose time ends: %v", err)
	}
	_, _, err = process(t, &source{}, backtests.Params{MaxEvents: users * each, Within: "size"})
	if !errors.Is(err, job.ErrFailed) || !strings.Contains(err.Error(), `has the attribute "size"`) {
		t.Errorf("an unknown attribute: %v", err)
	}
}

// A version is judged as the strategy that it is.
func TestVersions(t *testing.T) {
	want, _, err := process(t, &source{}, backtests.Params{MaxEvents: users * each})
	must.Succeed(t, err)
	got, _, err := process(t, &source{}, backtests.Params{MaxEvents: users * each, Strategies: []string{"1"}})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("version 1: %v (-want +got):\n%s", err, diff)
	}
	_, _, err = process(t, &source{}, backtests.Params{MaxEvents: users * each, Strategies: []string{"2"}})
	if !errors.Is(err, job.ErrFailed) || !strings.Contains(err.Error(), "version 2 is no longer kept") {
		t.Errorf("a version that is gone: %v", err)
	}
}

// A task that judges stops once its job has ended, and the error is that of the
// job.
func TestJudgingStopsWithItsJob(t *testing.T) {
	w := backtests.Work{Store: storetest.New(t), Source: &source{}, Config: configured{}, Now: time.Now}
	putObjects(t, w.Store)
	p := backtests.Params{Index: "shoes", Names: []string{"s"}, Strategies: []string{viewed}, MaxEvents: users * each}
	last := ""
	_, err := w.Process(t.Context(), job.Job{Params: p}, config.App{ID: "demo"}, job.Shard{PlannedUsers: users}, time.Time{},
		func(p job.Progress) error {
			if last = p.Next; last == "judging popularity" {
				return job.ErrEnded
			}
			return nil
		})
	if !errors.Is(err, job.ErrEnded) || errors.Is(err, job.ErrFailed) || last != "judging popularity" {
		t.Errorf("a backtest whose job has ended: %v, last progress %q", err, last)
	}
}
