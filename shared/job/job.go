// Package job is work over all users of an app: jobs that are cut into shards of
// some thousand users, each carried out by tasks that go on where the last one
// stopped. It holds the jobs, their states, and what a task does; what is done to
// the users is a Work of whoever runs them.
//
// It is separate from every such work because it is about what outlives any
// process: every step is written down before it is built upon, so that a crash
// between two writes, a task that comes twice, late or never, costs time and
// nothing else. Jobs lie in Firestore beside the app's configuration, those of
// each runner in a collection of their own:
//
//	apps/{app}/{collection}/{id}             state, kind, ..., totals once ended
//	apps/{app}/{collection}/{id}/shards/{n}  from, to, state, step, next, counts
//
// What has ended is kept for some months (Kept) and then collected by Firestore's
// TTL: the documents of jobs and of shards that have ended have a time expiresAt,
// and those that have not have none, so that nothing is taken that somebody still
// works on. TTL looks at each collection group by itself, {collection} and shards,
// and has to be told of each.
//
// A shard is a range of user tokens [from, to) in the order of their rows; all
// shards of a job together cover every token there can be, so that a user who
// comes later is in one of them. The counts of a job are sums over its shards,
// so that shards which work at once do not wait for one document.
//
// There are two stores of jobs: Firestore, and memory for the local stack and
// tests.
package job

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/config"
)

var (
	// ErrNotFound says that there is no such job or shard.
	ErrNotFound = errors.New("not found")
	// ErrExists says that there is one of that id already.
	ErrExists = errors.New("already exists")
	// ErrEnded says that the job or the shard has come to its end: it never
	// changes again.
	ErrEnded = errors.New("has ended")
)

// State is how far a job is.
type State string

// A job is planning until all of its shards are written, running until all of
// them have ended, and then done, or failed if one of them did. It is superseded
// by a newer job or strategy, and cancelled by hand.
const (
	Planning   State = "planning"
	Running    State = "running"
	Done       State = "done"
	Failed     State = "failed"
	Superseded State = "superseded"
	Cancelled  State = "cancelled"
)

// next holds every change of state there is. A plan that cannot be made fails
// the job without it ever having run.
var next = map[State][]State{
	Planning: {Running, Failed, Superseded, Cancelled},
	Running:  {Done, Failed, Superseded, Cancelled},
}

// Ended tells whether a job of this state is over.
func (s State) Ended() bool { return len(next[s]) == 0 }

// Trigger is why a recompute was started.
type Trigger string

// Job is work over all users of one app.
type Job struct {
	App string `firestore:"app"`
	ID  string `firestore:"id"`
	// Kind tells apart what a runner's jobs do, where they do several things.
	Kind  string `firestore:"kind"`
	State State  `firestore:"state"`
	// Lanes is how many shards have tasks at a time, those of the lowest numbers
	// that are open; 0: all, from when they are planned.
	Lanes int `firestore:"lanes"`

	// Of recomputes: StrategyVersion is the version that profiles get; a newer one
	// supersedes the job. RetentionDays is the retention at the start.
	Trigger         Trigger `firestore:"trigger"`
	StrategyVersion int64   `firestore:"strategyVersion"`
	RetentionDays   int     `firestore:"retentionDays"`
	// OnlyStale leaves profiles alone that can be served as they are.
	OnlyStale bool `firestore:"onlyStale"`
	// Maintain tends the users' histories as well.
	Maintain bool `firestore:"maintain"`

	// Of work on the log: From and To are schemas, Rate is how many rows a second
	// all lanes together may do, 0 for no limit, and Since, to the microsecond, is
	// where the window begins, zero if there is none.
	From  string    `firestore:"from"`
	To    string    `firestore:"to"`
	Rate  int       `firestore:"rate"`
	Since time.Time `firestore:"since"`

	// PlanStep is the number of the plan task that is in force.
	PlanStep int `firestore:"planStep"`
	// Totals are zero until the job has ended; before, ask the store for them.
	Totals Totals `firestore:"totals"`
	// StartedAt and FinishedAt are by the engine's clock, to the microsecond;
	// FinishedAt is zero until the job has ended.
	StartedAt  time.Time `firestore:"startedAt"`
	FinishedAt time.Time `firestore:"finishedAt"`
	// ExpiresAt is when the job may be gone, by the real clock and to the
	// microsecond, whatever the engine's is; zero, and not there at all in
	// Firestore, until the job has ended.
	ExpiresAt time.Time `firestore:"expiresAt,omitempty"`
	// Error says why a job did not get done.
	Error string `firestore:"error"`
}

// Totals are sums over the shards of a job.
type Totals struct {
	Shards int `firestore:"shards"`
	Done   int `firestore:"done"`
	Failed int `firestore:"failed"`
	// PlannedUsers is how many users the shards were cut for, Visited how many
	// were come to, Users how many of those the work has something to do with: for
	// a recompute those who are known, whether they were computed or left alone,
	// because they have an event in the window that is not deleted.
	PlannedUsers int64 `firestore:"plannedUsers"`
	Visited      int64 `firestore:"visited"`
	Users        int64 `firestore:"users"`
	// Events is how many events were read.
	Events int64 `firestore:"events"`
	// Changed is how much was written, Left how much waits for something before it
	// can be, Faulty how much could not be or is wrong, all in what the work counts
	// in: profiles, or rows.
	Changed int64 `firestore:"changed"`
	Left    int64 `firestore:"left"`
	Faulty  int64 `firestore:"faulty"`
	// Stale is how much was not as it should be at the last look.
	Stale int64 `firestore:"stale"`
}

// Shard is a part of a job.
type Shard struct {
	N int `firestore:"n"`
	// From and To bound the user tokens, [From, To); empty is an open end.
	From  string     `firestore:"from"`
	To    string     `firestore:"to"`
	State ShardState `firestore:"state"`
	// Step is the number of the task that is in force. It changes when a task
	// has used up its time and another goes on.
	Step int `firestore:"step"`
	// Pass is 0 for the first way through the range; those that follow are for
	// what was stale in the end. Next is where the work goes on, in its own terms;
	// it begins at From. Swept says that it is through and is to be verified.
	Pass  int    `firestore:"pass"`
	Next  string `firestore:"next"`
	Swept bool   `firestore:"swept"`
	// LastTry says that a task of this step began after all its attempts failed.
	LastTry bool `firestore:"lastTry"`
	// PlannedUsers to Stale are as in Totals; Visited to Faulty count the first
	// pass, and Faults are what it found first, at most MaxFaults.
	PlannedUsers int64    `firestore:"plannedUsers"`
	Visited      int64    `firestore:"visited"`
	Users        int64    `firestore:"users"`
	Events       int64    `firestore:"events"`
	Changed      int64    `firestore:"changed"`
	Left         int64    `firestore:"left"`
	Faulty       int64    `firestore:"faulty"`
	Stale        int64    `firestore:"stale"`
	Faults       []string `firestore:"faults"`
	// ExpiresAt is as in Job: it is zero while the shard is open.
	ExpiresAt time.Time `firestore:"expiresAt,omitempty"`
	// Error says why the shard failed.
	Error string `firestore:"error"`
}

// Kept is how long jobs and shards are kept after they have ended, at least: TTL
// takes its time. Whoever asks for one later must do without it.
const Kept = 90 * 24 * time.Hour

// MaxFaults is how many faults a shard tells of.
const MaxFaults = 20

// ShardState is how far a shard is.
type ShardState string

// A shard is open until it is done or has failed.
const (
	ShardOpen   ShardState = "open"
	ShardDone   ShardState = "done"
	ShardFailed ShardState = "failed"
)

// Jobs keeps jobs and their shards. It is safe for concurrent use. Apart from the
// sentinels of this package its errors are faults of the backend, or those that
// a change returned.
type Jobs interface {
	// Create stores a new job; ErrExists if the app has one of that id.
	Create(ctx context.Context, job Job) error
	// Job returns a job, or ErrNotFound.
	Job(ctx context.Context, app, id string) (Job, error)
	// List returns an app's jobs, the newest first, at most so many.
	List(ctx context.Context, app string, limit int) ([]Job, error)
	// Unfinished returns an app's jobs that have not ended, the newest first.
	Unfinished(ctx context.Context, app string) ([]Job, error)
	// Update changes a job unless somebody else changes it meanwhile: then change
	// is called again with what that left. It returns the job as it then is. An
	// error of change leaves the job alone and is returned. ErrEnded if the job
	// had ended.
	Update(ctx context.Context, app, id string, change func(*Job) error) (Job, error)

	// CreateShard stores a new shard of a job that is there; ErrExists if it has
	// one of that number.
	CreateShard(ctx context.Context, app, id string, shard Shard) error
	// Shard returns a shard, or ErrNotFound.
	Shard(ctx context.Context, app, id string, n int) (Shard, error)
	// LastShard returns the shard of the highest number, or ErrNotFound.
	LastShard(ctx context.Context, app, id string) (Shard, error)
	// ShardsIn returns shards of a state in the order of their numbers, at most
	// so many.
	ShardsIn(ctx context.Context, app, id string, state ShardState, limit int) ([]Shard, error)
	// UpdateShard changes a shard as Update changes a job.
	UpdateShard(ctx context.Context, app, id string, n int, change func(*Shard) error) (Shard, error)
	// Totals sums a job's shards up; without any it is zero.
	Totals(ctx context.Context, app, id string) (Totals, error)
	// Faults returns faults of the shards that count any, at most so many. Those of
	// a shard stand together and in order; the shards are in the order of their
	// numbers, but need not be the first where not all are asked for.
	Faults(ctx context.Context, app, id string, limit int) ([]string, error)
}

// SinceMillis is Since in ms, 0 if there is none.
func (j Job) SinceMillis() int64 {
	if j.Since.IsZero() {
		return 0
	}
	return j.Since.UnixMilli()
}

// prepared returns a new job as it is stored.
func (j Job) prepared() (Job, error) {
	if !config.ValidAppID(j.App) || !idForm.MatchString(j.ID) {
		return Job{}, fmt.Errorf("job %q of app %q: malformed id", j.ID, j.App)
	}
	if j.State != Planning {
		return Job{}, fmt.Errorf("job %s begins as %q, want %s", j.ID, j.State, Planning)
	}
	j.StartedAt, j.FinishedAt, j.Since = stamp(j.StartedAt), time.Time{}, stamp(j.Since)
	j.ExpiresAt = time.Time{}
	return j, nil
}

// changed returns what a job becomes, if it may.
func (j Job) changed(change func(*Job) error) (Job, error) {
	if j.State.Ended() {
		return Job{}, fmt.Errorf("job %s is %s: %w", j.ID, j.State, ErrEnded)
	}
	to := j
	if err := change(&to); err != nil {
		return Job{}, err
	}
	if to.State != j.State && !slices.Contains(next[j.State], to.State) {
		return Job{}, fmt.Errorf("job %s cannot become %s, it is %s", j.ID, to.State, j.State)
	}
	to.StartedAt, to.FinishedAt = stamp(to.StartedAt), stamp(to.FinishedAt)
	to.ExpiresAt = expiry(to.State.Ended(), to.ExpiresAt)
	return to, nil
}

// prepared returns a new shard as it is stored: it may have ended already, if there
// is nothing to do in it.
func (s Shard) prepared() Shard {
	s.ExpiresAt = expiry(s.State != ShardOpen, s.ExpiresAt)
	return s
}

// expiry is when what has ended may be gone. What has not must not go at all.
func expiry(ended bool, at time.Time) time.Time {
	if !ended {
		return time.Time{}
	}
	return stamp(at)
}

// changed returns what a shard becomes, if it may.
func (s Shard) changed(change func(*Shard) error) (Shard, error) {
	if s.State != ShardOpen {
		return Shard{}, fmt.Errorf("shard %d is %s: %w", s.N, s.State, ErrEnded)
	}
	to := s
	if err := change(&to); err != nil {
		return Shard{}, err
	}
	return to.prepared(), nil
}

// add sums a shard up.
func (t *Totals) add(s Shard) {
	t.Shards++
	switch s.State {
	case ShardDone:
		t.Done++
	case ShardFailed:
		t.Failed++
	}
	t.PlannedUsers += s.PlannedUsers
	t.Visited += s.Visited
	t.Users += s.Users
	t.Events += s.Events
	t.Changed += s.Changed
	t.Left += s.Left
	t.Faulty += s.Faulty
	t.Stale += s.Stale
}

// byNumber orders shards.
func byNumber(a, b Shard) int { return a.N - b.N }

// firstFaults are those of some shards in the order of their numbers.
func firstFaults(shards []Shard, limit int) []string {
	slices.SortFunc(shards, byNumber)
	var all []string
	for _, s := range shards {
		all = append(all, s.Faults...)
	}
	return all[:min(limit, len(all))]
}

// NewestFirst orders jobs of an app: it is negative if the first began later, and
// of those that began at the same time by their ids.
func NewestFirst(a, b Job) int {
	if c := b.StartedAt.Compare(a.StartedAt); c != 0 {
		return c
	}
	return strings.Compare(b.ID, a.ID)
}

// idForm is what every id looks like, so that one can stand in a path.
var idForm = regexp.MustCompile(`^[a-z]+-[A-Za-z0-9-]{1,100}$`)

// stamp is a time as every store can hold it.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
