// Package job runs work over all users of an app. A job is cut into shards of
// some thousand users; the tasks of a shard run one after the other, each from
// where the last one stopped. The package holds the jobs, their states and what
// a task does; what happens to the users is the Work of the packages that
// define jobs: recompute, migration and reenrich.
//
// It is separate from them because it is about surviving the end of any
// process: every step is stored before the next one builds upon it, so that a
// crash between two writes, or a task that is delivered twice, late or never,
// costs time and nothing else. Jobs lie beside the app's configuration, those
// of each runner in a collection of their own (see package jobdb, which keeps
// them in Firestore):
//
//	apps/{app}/{collection}/{id}             state, kind, parameters, ..., totals once ended
//	apps/{app}/{collection}/{id}/shards/{n}  from, to, state, step, next, counts
//
// Ended jobs and shards are kept for some months (Kept) and then collected by
// Firestore's TTL. Their documents have a time expiresAt; those of unfinished
// ones have no such field, so that TTL never takes them. TTL is configured for
// each collection group, that is for every {collection} and for shards.
//
// A shard is a range of user tokens [from, to) in the order of their rows. The
// shards of a job together cover every possible token, so that a user who is
// new after the planning is in one of them. The counts of a job are sums over
// its shards, so that concurrent shards do not contend for one document.
package job

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/config"
)

var (
	// ErrNotFound means that the job or shard does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists means that a job or shard of that id exists already.
	ErrExists = errors.New("already exists")
	// ErrEnded means that the job or shard has ended: it never changes again.
	ErrEnded = errors.New("has ended")
)

// State is how far a job is.
type State string

// A job is planning until all of its shards are stored, running until all of
// them have ended, and then done, or failed if a shard failed. A newer job or
// strategy supersedes it; an operator cancels it.
const (
	Planning   State = "planning"
	Running    State = "running"
	Done       State = "done"
	Failed     State = "failed"
	Superseded State = "superseded"
	Cancelled  State = "cancelled"
)

// next holds every allowed change of state. A job whose planning fails becomes
// Failed without having run.
var next = map[State][]State{
	Planning: {Running, Failed, Superseded, Cancelled},
	Running:  {Done, Failed, Superseded, Cancelled},
}

// Ended reports whether a job of this state never changes again.
func (s State) Ended() bool { return len(next[s]) == 0 }

// Params are what a job was asked to do, beyond the fields that all jobs have.
// Each package that defines jobs has a type of its own: a struct of plain
// values, whose fields have firestore tags and are stored among the fields of
// the job's document. The parameters of a job never change.
type Params interface {
	// LogAttrs are the attributes that the log line of the job's start has for
	// them.
	LogAttrs() []slog.Attr
}

// Collection is where the jobs of a runner lie under their app.
type Collection struct {
	Name string
	// Decode reads the parameters of a stored job. DecodeParams makes it.
	Decode func(dataTo func(any) error) (Params, error)
}

// DecodeParams reads parameters of type P; dataTo fills a struct with the
// fields of a document. A field that the document does not have is left zero.
func DecodeParams[P Params](dataTo func(any) error) (Params, error) {
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
	// MaxInFlight is how many shards have tasks at a time: the open ones of the
	// lowest numbers. 0: all have, from the planning on.
	MaxInFlight int `firestore:"lanes"`
	// Params are of the type that the runner's package defines.
	Params Params `firestore:"-"`

	// PlanStep is the number of the current plan task.
	PlanStep int `firestore:"planStep"`
	// Totals are zero until the job has ended; until then ask the store for
	// them.
	Totals Totals `firestore:"totals"`
	// StartedAt and FinishedAt are by the engine's clock, to the microsecond;
	// FinishedAt is zero until the job has ended.
	StartedAt  time.Time `firestore:"startedAt"`
	FinishedAt time.Time `firestore:"finishedAt"`
	// ExpiresAt is when the job may be deleted, by the real clock and to the
	// microsecond. It is zero, and missing in Firestore, until the job has
	// ended.
	ExpiresAt time.Time `firestore:"expiresAt,omitempty"`
	// Error is why a job failed or was superseded.
	Error string `firestore:"error"`
}

// Shard is a part of a job.
type Shard struct {
	N int `firestore:"n"`
	// From and To bound the user tokens, [From, To); empty means unbounded.
	From  string     `firestore:"from"`
	To    string     `firestore:"to"`
	State ShardState `firestore:"state"`
	// Step is the number of the current task. A task whose time is over
	// increments it and enqueues the next one.
	Step int `firestore:"step"`
	// Pass is 0 for the first pass over the range. Further passes are for what
	// Verify found stale. Next is where the pass continues, in the terms of its
	// Work; it begins at From. Processed means that the pass is over and to be
	// verified.
	Pass      int    `firestore:"pass"`
	Next      string `firestore:"next"`
	Processed bool   `firestore:"swept"`
	// LastTry means that a task of this step began after all its attempts
	// failed.
	LastTry bool `firestore:"lastTry"`
	// PlannedUsers and Stale are as in Totals. Counts are of the first pass,
	// and Faults are the first that it found, at most MaxFaults.
	PlannedUsers int64 `firestore:"plannedUsers"`
	Counts
	Stale  int64    `firestore:"stale"`
	Faults []string `firestore:"faults"`
	// ExpiresAt is as in Job: zero while the shard is open.
	ExpiresAt time.Time `firestore:"expiresAt,omitempty"`
	// Error is why the shard failed.
	Error string `firestore:"error"`
}

// Kept is how long jobs and shards are kept after they have ended, at least:
// TTL deletes them some time later.
const Kept = 90 * 24 * time.Hour

// MaxFaults is how many faults a shard lists.
const MaxFaults = 20

// ShardState is how far a shard is.
type ShardState string

// A shard is open until it is done or has failed.
const (
	ShardOpen   ShardState = "open"
	ShardDone   ShardState = "done"
	ShardFailed ShardState = "failed"
)

// ValidID reports whether a job can have the id. Such an id can be part of a
// path.
func ValidID(id string) bool { return idForm.MatchString(id) }

var idForm = regexp.MustCompile(`^[a-z]+-[A-Za-z0-9-]{1,100}$`)

// Prepared returns a new job as every store keeps it, or an error if it cannot
// be created.
func (j Job) Prepared() (Job, error) {
	if !config.ValidAppID(j.App) || !ValidID(j.ID) {
		return Job{}, fmt.Errorf("job %q of app %q: malformed id", j.ID, j.App)
	}
	if j.State != Planning {
		return Job{}, fmt.Errorf("job %s begins as %q, want %s", j.ID, j.State, Planning)
	}
	j.StartedAt, j.FinishedAt, j.ExpiresAt = Stamp(j.StartedAt), time.Time{}, time.Time{}
	return j, nil
}

// Apply returns the job after change as every store keeps it, or an error if
// the job may not change so. ErrEnded if it has ended.
func (j Job) Apply(change func(*Job) error) (Job, error) {
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
	to.StartedAt, to.FinishedAt = Stamp(to.StartedAt), Stamp(to.FinishedAt)
	to.ExpiresAt = expiry(to.State.Ended(), to.ExpiresAt)
	return to, nil
}

// Prepared returns a new shard as every store keeps it. A shard without users
// has ended already.
func (s Shard) Prepared() Shard {
	s.ExpiresAt = expiry(s.State != ShardOpen, s.ExpiresAt)
	return s
}

// Apply returns the shard after change as every store keeps it. ErrEnded if it
// has ended.
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

// expiry is when something that ended may be deleted; zero for what has not
// ended.
func expiry(ended bool, at time.Time) time.Time {
	if !ended {
		return time.Time{}
	}
	return Stamp(at)
}

// FirstFaults returns the faults of some shards in the order of their numbers,
// at most limit.
func FirstFaults(shards []Shard, limit int) []string {
	slices.SortFunc(shards, byNumber)
	var all []string
	for _, s := range shards {
		all = append(all, s.Faults...)
	}
	return all[:min(limit, len(all))]
}

// byNumber orders shards.
func byNumber(a, b Shard) int { return a.N - b.N }

// NewestFirst orders jobs of an app: by their start, the latest first, and then
// by their ids, the greatest first.
func NewestFirst(a, b Job) int {
	if c := b.StartedAt.Compare(a.StartedAt); c != 0 {
		return c
	}
	return strings.Compare(b.ID, a.ID)
}

// Stamp returns a time as every store keeps it: in UTC, to the microsecond.
func Stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
