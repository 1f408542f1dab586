package jobtest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
)

// User is a user of a harness.
type User struct {
	// Region is where they live, if each user has a region of their own.
	Region  string
	Known   bool
	Events  int64
	Version int64
	// Relapses is how often a process with an old configuration undoes the
	// work.
	Relapses int
	// Waits means that some of the user's work is left.
	Waits bool
	// Fault is what is wrong with the user, if anything is.
	Fault string
}

func (u *User) fault(name string) string { return name + ": " + u.Fault }

// Counts counts the work on users.
type Counts struct {
	Users   int64
	Known   int64
	Events  int64 // of users who got another version
	Written int64 // users who got another version
	Waiting int64
	Faulty  int64
}

// add counts a user.
func (c *Counts) add(u *User, written bool) {
	c.Users++
	if u.Known {
		c.Known++
	}
	if u.Waits {
		c.Waiting++
	}
	if u.Fault != "" {
		c.Faulty++
	}
	if written {
		c.Written++
		c.Events += u.Events
	}
}

// Step does the work on the next user before to: it sets the user's version,
// and a second passes.
func (h *Harness) Step(version int64, to string, onlyStale bool, p *job.Progress) error {
	return h.step(version, "", to, onlyStale, p)
}

// step is Step of the users of a region.
func (h *Harness) step(version int64, region, to string, onlyStale bool, p *job.Progress) error {
	names := h.within(region, p.Next, to)
	if len(names) == 0 {
		p.Done = true
		return nil
	}
	name := names[0]
	if name == h.Poisoned {
		return h.Poison
	}
	u := h.Users[name]
	written := !onlyStale || u.Version != version
	counts := job.CountsOf[Counts](p.Counts)
	counts.add(u, written)
	p.Counts = job.Count(counts)
	if u.Fault != "" {
		p.Faults = append(p.Faults, u.fault(name))
		p.Faults = p.Faults[:min(len(p.Faults), job.MaxFaults)]
	}
	if written {
		if u.Version = version; u.Relapses > 0 {
			u.Version, u.Relapses = 0, u.Relapses-1
		}
	}
	h.Now = h.Now.Add(time.Second)
	p.Next, p.Done = name+"\x00", len(names) == 1
	return nil
}

// Within returns the users in [from, to) in their order.
func (h *Harness) Within(from, to string) []string { return h.within("", from, to) }

// within is Within of the users of a region, "" of all.
func (h *Harness) within(region, from, to string) []string {
	var names []string
	for name, u := range h.Users {
		if (region == "" || u.Region == region) && name >= from && (to == "" || name < to) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Verify counts the users from a place on who have another version. Each takes
// VerifyTakes.
func (h *Harness) Verify(version int64, from, to string, until time.Time) (v job.Verified) {
	return h.verify(version, "", from, to, until)
}

// verify is Verify of the users of a region.
func (h *Harness) verify(version int64, region, from, to string, until time.Time) (v job.Verified) {
	for i, name := range h.within(region, from, to) {
		if i > 0 && !h.Now.Before(until) {
			v.Next = name
			break
		}
		if h.Users[name].Version != version {
			v.Stale++
		}
		h.Now = h.Now.Add(h.VerifyTakes)
	}
	return v
}

// Collection is that of the jobs of a harness.
var Collection = job.NewCollection[Params, Counts]("recomputes")

// Params are the parameters of the jobs of a harness.
type Params struct {
	Version   int64 `firestore:"version"` // that users get
	OnlyStale bool  `firestore:"onlyStale"`
	job.LogWindow
}

// LogAttrs returns nothing.
func (Params) LogAttrs() []slog.Attr { return nil }

// gatedWork gives users the version of the job's parameters.
type gatedWork struct{ *Harness }

var _ job.Work = gatedWork{}

func (gatedWork) Obsolete(j job.Job, app config.App) string {
	version := job.ParamsOf[Params](j).Version
	if app.StrategyVersion == version {
		return ""
	}
	return fmt.Sprintf("version %d has replaced %d", app.StrategyVersion, version)
}

func (w gatedWork) Process(ctx context.Context, j job.Job, _ config.App, s job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	params := job.ParamsOf[Params](j)
	p := job.Progress{Next: s.Next}
	for !p.Done && (p.Next == s.Next || w.Now.Before(until)) {
		step := func() error { return w.step(params.Version, s.Region, s.To, params.OnlyStale || s.Pass > 0, &p) }
		if err := w.Call(ctx, "work", step); err != nil {
			return p, err
		}
		if err := progress(p); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (w gatedWork) Verify(ctx context.Context, j job.Job, _ config.App, s job.Shard,
	until time.Time) (v job.Verified, err error) {
	err = w.Call(ctx, "verify", func() error {
		v = w.verify(job.ParamsOf[Params](j).Version, s.Region, s.Next, s.To, until)
		return nil
	})
	return v, err
}
