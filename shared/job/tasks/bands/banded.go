// Package bands is the task that follows a change of an index's numeric bands: it
// starts the re-enrichment that gives logged events the new bands.
//
// The function catalog enqueues the task, and so does the first re-enrichment, for the
// last one (see package job/reenrich). The worker runs it. The package keeps no data.
package bands

import (
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/queue"
)

// Kind is the kind of the tasks that follow a change of numeric bands.
var Kind = queue.Kind[Request]{What: "numeric bands", Path: "/banded"}

// request is the body of a task.
// Request is the body of a task.
type Request struct {
	App string `json:"app"`
}

// Task returns the task that follows the change of an index's bands to a version.
func Task(app, index string, version int64) (queue.Task, error) {
	return Kind.Task(app, Request{app}, 0, "banded", app, index, strconv.FormatInt(version, 10))
}

// Last returns the task that starts the last re-enrichment, some time after a first one.
func Last(app, first string, delay time.Duration) (queue.Task, error) {
	return Kind.Task(app, Request{app}, delay, "banded-last", app, first)
}

// Fault implements queue.Request.
func (r Request) Fault() string {
	if !config.ValidAppID(r.App) {
		return "app must be present and well-formed"
	}
	return ""
}
