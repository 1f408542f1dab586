// Package queue is the contract between code that requests work and the worker
// that does it. A task is a POST of JSON to a path of the worker. A queue
// creates a task once for a name, however often it is requested. The package is
// separate from taskqueue, which keeps the tasks in Cloud Tasks, so that jobs
// and purges need no cloud library. It keeps no data.
package queue

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Task is one piece of work for the worker.
type Task struct {
	// Name identifies the work within the queue: 1 to 500 of A-Z a-z 0-9 _ -. A
	// name stays taken while its task exists and for about an hour afterwards,
	// at most 24 hours. TaskName makes names.
	Name string
	// App is the app that the task is for. A dedicated customer's tasks wait in queues
	// of their own.
	App string
	// Region is that of the users whom the body names, or of the app, if the caller knows it: then nobody looks it up.
	// Empty: that of the app is looked up.
	Region string
	// Path is where on the worker the task goes, beginning with a slash.
	Path string
	// Body is the JSON to post. Body, name and headers together may have 100
	// KB.
	Body []byte
	// Delay is how long to wait before the first attempt, at most 30 days. 0 or
	// less: no wait.
	Delay time.Duration
	// Short says that the task takes seconds and waits in the queue of purges, so that no task
	// of a job is before it. A name is taken in one queue only.
	Short bool
	// Refresh says that the task waits in one of the queues of refreshes, which its name
	// chooses.
	Refresh bool
}

// Queue takes tasks for the worker.
type Queue interface {
	// Create returns nil once the queue has the task, or had it already. After
	// an error the task may exist all the same, so it is always right to call
	// Create again with the same task. ErrInvalid marks a task that can never
	// be created.
	Create(ctx context.Context, task Task) error
}

// Of returns the name of the customer who has the queues of the app to themselves;
// empty if the app shares them, and for a queue that does not distinguish apps.
func Of(q Queue, app string) string {
	if named, ok := q.(interface{ Customer(app string) string }); ok {
		return named.Customer(app)
	}
	return ""
}

// ErrInvalid marks a task that no queue can take. Do not retry it.
var ErrInvalid = errors.New("invalid task")

// ID, PurgesID and RefreshesID are the last parts of the queues' names, in the cloud (see
// terraform/functions.json) and on one machine; those of refreshes end with a number from
// 0 on. All queues send their tasks to the worker, each at most its share of what the
// worker runs at once. Cloud Tasks starts at most 500 tasks of a queue per second, so
// there are Refreshes queues of refreshes.
const (
	ID          = "worker"
	PurgesID    = "purges"
	RefreshesID = "refreshes"
	Refreshes   = 2
)

var taskName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,500}$`)

// Validate returns ErrInvalid if no queue can take the task's name or path.
func (t Task) Validate() error {
	if !taskName.MatchString(t.Name) {
		return fmt.Errorf("%w: the name is not 1 to 500 of A-Z a-z 0-9 _ -", ErrInvalid)
	}
	if !strings.HasPrefix(t.Path, "/") {
		return fmt.Errorf("%w: the path %q does not begin with a slash", ErrInvalid, t.Path)
	}
	return nil
}
