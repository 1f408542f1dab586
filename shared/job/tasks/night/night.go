// Package night is the task that starts what the nightly round has for one app, and resumes
// the jobs of the app that a lost task has left. The round enqueues one for each app, and the
// worker runs it. The package keeps no data.
package night

import (
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/queue"
)

// Kind is the kind of the tasks of the nightly round.
var Kind = queue.Kind[Request]{What: "the night of an app", Path: "/nightly/app"}

// MaxAuditIn is the longest time between the task and the audit of its app.
const MaxAuditIn = 12 * time.Hour

// Request is the body of a task: an app, or one that has been deleted, and the night.
type Request struct {
	App string `json:"app"`
	// Night is the date on which the round began. A task that runs after midnight belongs to it too.
	Night string `json:"night"`
	Full  bool   `json:"full,omitempty"`
	// AuditSeconds is how long after the task the audit of the app begins.
	AuditSeconds int `json:"auditSeconds,omitempty"`
}

// Fault implements queue.Request.
func (r Request) Fault() string {
	if !config.ValidAppID(r.App) {
		return "app must be present and well-formed"
	}
	if _, err := time.Parse(time.DateOnly, r.Night); err != nil {
		return fmt.Sprintf("night %q must be a date such as 2026-11-29", r.Night)
	}
	if r.AuditSeconds < 0 || r.AuditSeconds > int(MaxAuditIn.Seconds()) {
		return fmt.Sprintf("auditSeconds must be from 0 to %d", int(MaxAuditIn.Seconds()))
	}
	return ""
}

// Task returns the task of a request for an app in a region, which may be empty. An app and a
// night have one task, and another one in a full round. Its queue is that of short tasks: no
// task of a job is before it.
func Task(r Request, region string, delay time.Duration) (queue.Task, error) {
	name := []string{"nightly", r.App, r.Night}
	if r.Full {
		name = append(name, "full")
	}
	task, err := Kind.Task(r.App, r, delay, name...)
	task.Region, task.Short = region, true
	return task, err
}
