package jobtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/job"
)

// User is what the work of a world knows of one.
type User struct {
	Known   bool
	Events  int64
	Version int64
	// Relapses is how often a process with an old configuration undoes the work
	// after it was done.
	Relapses int
	// Waits says that some of his work is left.
	Waits bool
	// Fault is what is wrong with him, if anything is.
	Fault string
}

func (u *User) fault(name string) string { return name + ": " + u.Fault }

// Step does the next user before to: he gets the version, and his second goes by.
func (w *World) Step(version int64, to string, onlyStale bool, p *job.Progress) error {
	names := w.Within(p.Next, to)
	if len(names) == 0 {
		p.Done = true
		return nil
	}
	name := names[0]
	if name == w.Poisoned {
		return w.Poison
	}
	u := w.Users[name]
	p.Visited++
	if u.Known {
		p.Users++
	}
	if u.Waits {
		p.Left++
	}
	if u.Fault != "" {
		p.Faulty++
		p.Faults = append(p.Faults, u.fault(name))
		p.Faults = p.Faults[:min(len(p.Faults), job.MaxFaults)]
	}
	if !onlyStale || u.Version != version {
		p.Changed++
		p.Events += u.Events
		if u.Version = version; u.Relapses > 0 {
			u.Version, u.Relapses = 0, u.Relapses-1
		}
	}
	w.Now = w.Now.Add(time.Second)
	p.Next, p.Done = name+"\x00", len(names) == 1
	return nil
}

// Within returns the users from one token up to another in their order.
func (w *World) Within(from, to string) []string {
	var names []string
	for name := range w.Users {
		if name >= from && (to == "" || name < to) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Stale counts the users from one token up to another who are not of a version.
func (w *World) Stale(version int64, from, to string) (stale int64) {
	for _, name := range w.Within(from, to) {
		if w.Users[name].Version != version {
			stale++
		}
	}
	return stale
}

// gatedWork gives users the version that a job is of.
type gatedWork struct{ *World }

var _ job.Work = gatedWork{}

func (gatedWork) Obsolete(j job.Job, app config.App) string {
	if app.StrategyVersion == j.StrategyVersion {
		return ""
	}
	return fmt.Sprintf("version %d has taken the place of %d", app.StrategyVersion, j.StrategyVersion)
}

func (w gatedWork) Sweep(ctx context.Context, j job.Job, _ config.App, s job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	p := job.Progress{Next: s.Next}
	for !p.Done && (p.Next == s.Next || w.Now.Before(until)) {
		step := func() error { return w.Step(j.StrategyVersion, s.To, j.OnlyStale || s.Pass > 0, &p) }
		if err := w.Call(ctx, "work", step); err != nil {
			return p, err
		}
		if err := progress(p); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (w gatedWork) Verify(ctx context.Context, j job.Job, _ config.App, s job.Shard) (stale int64, err error) {
	err = w.Call(ctx, "verify", func() error {
		stale = w.Stale(j.StrategyVersion, s.From, s.To)
		return nil
	})
	return stale, err
}
