// Package job runs work over all users of an app. A plan cuts a job into shards
// of some thousand users. The tasks of a shard run one after the other, and
// each continues from the last checkpoint. The package holds the jobs, their
// states, and the tasks. A Work defines what a job does to users; packages
// recompute, migration and reenrich have one each.
//
// Package job is separate from them because it makes jobs survive the end of
// any process. It stores every step before the next step builds on it. A crash
// between two writes, or a task that the queue delivers twice, late or never,
// costs time and nothing else. Jobs lie beside the app's configuration, in one
// collection for each runner, as documents:
//
//	apps/{app}/{collection}/{id}             state, kind, parameters, ..., totals once ended
//	apps/{app}/{collection}/{id}/shards/{n}  state, step, counts, ...
//
// The jobs that delete an app lie below deletions/{app} instead.
//
// Firestore has one database for all regions, so no document may name a user. What may do
// so are the details of a shard or a job: range, place, faults, result and error. Detailed
// keeps them apart, in a table of Bigtable in the region of the app, and a document names
// the version of its details. A write stores a new version first, and then the document.
//
// If each user of the app lives in a region of their own, a shard is of one region, and a job goes over the regions one
// after the other. The details of a shard, its tasks, and the error of a job that failed with it are in that region.
//
// Firestore's TTL deletes jobs and shards some months after they have ended
// (see Kept), at the time expiresAt in their documents. Documents of unfinished
// jobs and shards have no such field, so TTL never deletes them. TTL is
// configured for each collection group: for every {collection} and for shards.
//
// A shard is a range of user tokens [from, to) in the order of their rows. The
// shards of a job cover every possible token, so each user who arrives after
// the planning is in a shard too. What else a job has to do is in shards of named
// parts, which follow those over the users. The totals of a job are sums over its shards,
// so concurrent shards do not contend for one document.
package job

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
)

var (
	// ErrNotFound means that the job or shard does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists means that a job or shard of that id exists already.
	ErrExists = errors.New("already exists")
	// ErrEnded means that the job or shard has ended: it never changes again.
	ErrEnded = errors.New("has ended")
)

// State is a phase in the life of a job.
type State string

// A job is planning until it has stored all its shards, and running until every
// shard has ended. Then it is done, or failed if a shard failed. A newer job or
// strategy supersedes a job; an operator cancels it.
const (
	Planning   State = "planning"
	Running    State = "running"
	Done       State = "done"
	Failed     State = "failed"
	Superseded State = "superseded"
	Cancelled  State = "cancelled"
)

// transitions holds every allowed change of state. A job whose planning fails
// becomes Failed without having run.
var transitions = map[State][]State{
	Planning: {Running, Failed, Superseded, Cancelled},
	Running:  {Done, Failed, Superseded, Cancelled},
}

// Ended reports whether a job of this state never changes again.
func (s State) Ended() bool { return len(transitions[s]) == 0 }

// Params are the parameters of a job beyond the fields that all jobs have. Each
// package that defines jobs has its own type: a struct of plain values. Its
// fields have firestore tags, and the store keeps them among the fields of the
// job's document. The parameters of a job never change.
type Params interface {
	// LogAttrs returns the attributes that describe the parameters in the log
	// line of the job's start.
	LogAttrs() []slog.Attr
}

// Collection names the collection of a runner's jobs under their app.
type Collection struct {
	Name string
	// Decode reads the parameters of a stored job; dataTo fills a struct with the fields
	// of the job's document.
	Decode func(dataTo func(any) error) (Params, error)
	// Counts are the names of what the jobs count.
	Counts []string
	// BelowDeletion says that the collection lies below the deletion of the app and not
	// below the app, whose documents its jobs delete.
	BelowDeletion bool
}

// NewCollection describes the collection of jobs with parameters of type P, which count what
// the int64 fields of C name.
func NewCollection[P Params, C any](name string) Collection {
	return Collection{Name: name, Decode: decodeParams[P], Counts: countNames(reflect.TypeFor[C]())}
}

// OfDeletion returns the collection with BelowDeletion.
func (c Collection) OfDeletion() Collection {
	c.BelowDeletion = true
	return c
}

// decodeParams reads parameters of type P. A field that the document lacks stays zero.
func decodeParams[P Params](dataTo func(any) error) (Params, error) {
	var p P
	if err := dataTo(&p); err != nil {
		return nil, fmt.Errorf("decode the job's parameters: %w", err)
	}
	return p, nil
}

// Job is work over all users of one app.
type Job struct {
	App string `firestore:"app"`
	ID  string `firestore:"id"`
	// Kind distinguishes the jobs of a runner that has several kinds.
	Kind  string `firestore:"kind"`
	State State  `firestore:"state"`
	// Concurrency is how many shards have tasks at a time: the open shards with
	// the lowest numbers. 0 means that every shard gets its task as soon as it
	// is planned.
	Concurrency int `firestore:"concurrency"`
	// Params are of the type that the runner's package defines.
	Params Params `firestore:"-"`

	// PlanStep is the number of the current plan task.
	PlanStep int `firestore:"planStep"`
	// Totals are zero until the job has ended. Until then Runner.Find sums up
	// the shards.
	Totals Totals `firestore:"totals"`
	// StartedAt and FinishedAt are times of the engine's clock, to the
	// microsecond. FinishedAt is zero until the job has ended.
	StartedAt  time.Time `firestore:"startedAt"`
	FinishedAt time.Time `firestore:"finishedAt"`
	// Queue names the customer who has the queue of the job's tasks to themselves;
	// empty for the common queue. QueuedAt is when the first task is due, RunningAt when the planning ended. The times
	// are of the same form.
	Queue     string    `firestore:"queue"`
	QueuedAt  time.Time `firestore:"queuedAt,omitempty"`
	RunningAt time.Time `firestore:"runningAt,omitempty"`
	// ExpiresAt is the time from which TTL may delete the job, by the real
	// clock and to the microsecond. It is zero, and missing in Firestore, until
	// the job has ended.
	ExpiresAt time.Time `firestore:"expiresAt,omitempty"`
	// Error is why a job failed or was superseded.
	Error string `firestore:"error"`
	// Region is that of the users whom Error may name; empty: that of the app.
	Region string `firestore:"region,omitempty"`
	// Details names the version of the details that Detailed keeps apart. It is empty
	// everywhere else.
	Details string `firestore:"details,omitempty"`
}

// Shard is a part of a job.
type Shard struct {
	N int `firestore:"n"`
	// Part names what the shard works on if that is not a range of users, in words of the
	// Work.
	Part string `firestore:"part,omitempty"`
	// Region is where the users of the shard live; empty: in that of the app.
	Region string `firestore:"region,omitempty"`
	// From and To bound the user tokens, [From, To); empty means unbounded. Those of a part
	// are places in a format of the Work.
	From  string     `firestore:"from"`
	To    string     `firestore:"to"`
	State ShardState `firestore:"state"`
	// Step is the number of the current task. A task whose time is over
	// increments it and enqueues the next task.
	Step int `firestore:"step"`
	// Pass is 0 for the first pass over the range. Another pass follows if
	// Verify finds stale users or rows. Processed means that the pass is over
	// and Verify comes next. Next is the place where the pass continues, or its
	// verification, in a format of the Work; both begin at From.
	Pass      int    `firestore:"pass"`
	Next      string `firestore:"next"`
	Processed bool   `firestore:"swept"`
	// LastTry means that the task of this step has used up its attempts and has
	// begun one more.
	LastTry bool `firestore:"lastTry"`
	// PlannedUsers and Stale mean the same as in Totals. Counts covers the
	// first pass. Faults lists the first faults of that pass, at most
	// MaxFaults.
	PlannedUsers int64    `firestore:"plannedUsers"`
	Counts       Counts   `firestore:"counts,omitempty"`
	Stale        int64    `firestore:"stale"`
	Faults       []string `firestore:"faults"`
	// Result is what the work has found, in a format of the Work. It is empty
	// until the range is processed, and for most kinds of jobs.
	Result string `firestore:"result,omitempty"`
	// ExpiresAt means the same as in Job. It is zero while the shard is open.
	ExpiresAt time.Time `firestore:"expiresAt,omitempty"`
	// NotBefore is when the first task of the shard runs at the earliest, by the real
	// clock. Zero: at once.
	NotBefore time.Time `firestore:"notBefore,omitempty"`
	// Error is why the shard failed.
	Error string `firestore:"error"`
	// Details means the same as in Job.
	Details string `firestore:"details,omitempty"`
}

// Kept is the time for which ended jobs and shards are kept. TTL deletes them
// some time after it.
const Kept = 90 * 24 * time.Hour

// MaxFaults is how many faults a shard lists.
const MaxFaults = 20

// ShardState is a phase in the life of a shard.
type ShardState string

// A shard is open until it is done or has failed.
const (
	ShardOpen   ShardState = "open"
	ShardDone   ShardState = "done"
	ShardFailed ShardState = "failed"
)

// validID reports whether a job can have the id. A valid id can be part of a
// path.
func validID(id string) bool { return idForm.MatchString(id) }

var idForm = regexp.MustCompile(`^[a-z]+-[A-Za-z0-9-]{1,100}$`)

// Prepared returns a new job in the form that every store keeps, or an error if
// no store may create it.
func (j Job) Prepared() (Job, error) {
	if !config.ValidAppID(j.App) || !validID(j.ID) {
		return Job{}, fmt.Errorf("job %q of app %q: malformed id", j.ID, j.App)
	}
	if j.State != Planning {
		return Job{}, fmt.Errorf("new job %s is %q, want %s", j.ID, j.State, Planning)
	}
	j.StartedAt, j.FinishedAt, j.ExpiresAt = Stamp(j.StartedAt), time.Time{}, time.Time{}
	j.QueuedAt, j.RunningAt = Stamp(j.QueuedAt), time.Time{}
	return j, nil
}

// Apply returns the changed job in the form that every store keeps. It returns
// an error if the change is not allowed, ErrEnded if the job has ended.
func (j Job) Apply(change func(*Job) error) (Job, error) {
	if j.State.Ended() {
		return Job{}, fmt.Errorf("job %s is %s: %w", j.ID, j.State, ErrEnded)
	}
	to := j
	if err := change(&to); err != nil {
		return Job{}, err
	}
	if to.State != j.State && !slices.Contains(transitions[j.State], to.State) {
		return Job{}, fmt.Errorf("job %s cannot become %s, it is %s", j.ID, to.State, j.State)
	}
	to.StartedAt, to.FinishedAt, to.RunningAt = Stamp(to.StartedAt), Stamp(to.FinishedAt), Stamp(to.RunningAt)
	to.ExpiresAt = expiry(to.State.Ended(), to.ExpiresAt)
	return to, nil
}

// Prepared returns a new shard in the form that every store keeps. A shard
// without users is done from the start.
func (s Shard) Prepared() Shard {
	if !s.NotBefore.IsZero() {
		s.NotBefore = Stamp(s.NotBefore)
	}
	s.ExpiresAt = expiry(s.State != ShardOpen, s.ExpiresAt)
	return s
}

// Apply returns the changed shard in the form that every store keeps, or
// ErrEnded if the shard has ended.
func (s Shard) Apply(change func(*Shard) error) (Shard, error) {
	if s.State != ShardOpen {
		return Shard{}, fmt.Errorf("shard %d is %s: %w", s.N, s.State, ErrEnded)
	}
	to := s
	if err := change(&to); err != nil {
		return Shard{}, err
	}
	return to.Prepared(), nil
}

// expiry returns the stored form of an expiry time. It is zero unless the job
// or shard has ended.
func expiry(ended bool, at time.Time) time.Time {
	if !ended {
		return time.Time{}
	}
	return Stamp(at)
}

// firstFaults sorts shards by their numbers and returns their faults in that
// order, at most limit.
func firstFaults(shards []Shard, limit int) []string {
	slices.SortFunc(shards, byNumber)
	var all []string
	for _, s := range shards {
		all = append(all, s.Faults...)
	}
	return all[:min(limit, len(all))]
}

func byNumber(a, b Shard) int { return a.N - b.N }

// NewestFirst orders jobs of an app: by their start, the latest first, and then
// by their ids, the greatest first.
func NewestFirst(a, b Job) int {
	if c := b.StartedAt.Compare(a.StartedAt); c != 0 {
		return c
	}
	return strings.Compare(b.ID, a.ID)
}

// Stamp returns a time in the form that every store keeps: in UTC, to the
// microsecond.
func Stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
