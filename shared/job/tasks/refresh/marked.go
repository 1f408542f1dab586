// Package refresh is the task that refreshes a marked user at the end of a write window.
// The function process enqueues it after the mark, and worker runs it. No answer depends
// on it: a read computes the profile of a marked user. So a task that is lost, late or
// doubled costs time only. The package keeps no data.
package refresh

import (
	"context"
	"hash/fnv"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/queue"
)

// Kind is the kind of the tasks that refresh a user.
var Kind = queue.Kind[Request]{What: "a refresh", Path: "/refresh"}

// Request is the body of a task: a user whose profile may lack events.
type Request struct {
	App  string `json:"app"`
	User string `json:"userToken"`
}

// Task returns the task for the user's window of a length in which an instant lies. It is
// due at the end of the window. All marks of a user in one window give the same name, and no
// other window gives that name again: a queue refuses a name for hours after its task ran.
func Task(r Request, window time.Duration, now time.Time) (queue.Task, error) {
	end := endOf(r, window, now)
	task, err := Kind.Task(r.App, r, end.Sub(now), "refresh", r.App, r.User,
		strconv.FormatInt(window.Milliseconds(), 10), strconv.FormatInt(end.UnixMilli(), 10))
	task.Refresh = true
	return task, err
}

// endOf returns the first end of a user's windows after an instant. Windows of a length
// follow each other. Each user has a phase of their own, so that the ends of an app's
// users spread over the window.
func endOf(r Request, window time.Duration, now time.Time) time.Time {
	h := fnv.New64a()
	h.Write([]byte(r.App + "," + r.User))
	ms := window.Milliseconds()
	phase := int64(h.Sum64() % uint64(ms))
	return time.UnixMilli((now.UnixMilli()-phase)/ms*ms + ms + phase)
}

// Fault implements queue.Request.
func (r Request) Fault() string {
	if !config.ValidAppID(r.App) || !event.ValidUserToken(r.User) {
		return "app and userToken must be present and well-formed"
	}
	return ""
}

const (
	// concurrency is how many tasks of a message are created at a time, and enqueueTimeout how long
	// a message waits for them: its profiles are right without.
	concurrency    = 16
	enqueueTimeout = 2 * time.Second
	// maxNames is how many names a process remembers, twice.
	maxNames = 20_000
)

// Enqueuer enqueues the tasks of marked users. It is safe for concurrent use.
type Enqueuer struct {
	queue queue.Queue
	now   func() time.Time
	log   *slog.Logger

	created, failed atomic.Int64

	mu             sync.Mutex
	newer, earlier map[string]bool // names of tasks that this process has created
}

// New makes an Enqueuer.
func New(q queue.Queue, now func() time.Time, log *slog.Logger) *Enqueuer {
	return &Enqueuer{queue: q, now: now, log: log, newer: map[string]bool{}}
}

// Enqueue creates the tasks of users who have just been marked, of an app as in the region of these users. The clock is read here,
// after the marks, so a task is due after them. An error is logged and counted: the user
// stays without a stored profile until the next read, event or nightly round.
func (e *Enqueuer) Enqueue(ctx context.Context, app config.App, users []string) {
	ctx, cancel := context.WithTimeout(ctx, enqueueTimeout)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(concurrency)
	var failed atomic.Int64
	var last atomic.Pointer[error]
	for _, user := range users {
		g.Go(func() error {
			if err := e.enqueue(ctx, app, user); err != nil {
				failed.Add(1)
				last.Store(&err)
			}
			return nil
		})
	}
	_ = g.Wait() // it returns no error
	if n := failed.Load(); n > 0 {
		e.failed.Add(n)
		e.log.LogAttrs(ctx, slog.LevelWarn, "refreshes at the end of a write window are not enqueued, reads compute "+
			"the profiles",
			slog.String("app", app.ID), slog.Int64("users", n), slog.Any("error", *last.Load()))
	}
}

func (e *Enqueuer) enqueue(ctx context.Context, app config.App, user string) error {
	task, err := Task(Request{App: app.ID, User: user}, app.Limits.WriteWindow(), e.now())
	if err != nil {
		return err
	}
	if e.known(task.Name) {
		return nil
	}
	if app.Residency.On() {
		task.Region = app.Region // of these users, whom the body names
	}
	if err := e.queue.Create(ctx, task); err != nil {
		return err
	}
	e.created.Add(1)
	e.remember(task.Name)
	return nil
}

func (e *Enqueuer) known(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.newer[name] || e.earlier[name]
}

func (e *Enqueuer) remember(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.newer) >= maxNames {
		e.earlier, e.newer = e.newer, map[string]bool{}
	}
	e.newer[name] = true
}

// Each calls fn with the metric name, the help text and the value of each counter.
func (e *Enqueuer) Each(fn func(name, help string, read func() int64)) {
	fn("affinity.window_tasks", "Tasks that refresh a user at the end of a write window.", e.created.Load)
	fn("affinity.window_task_faults", "Such tasks that could not be created.", e.failed.Load)
}
