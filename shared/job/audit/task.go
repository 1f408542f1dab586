package audit

import (
	"fmt"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/queue"
)

// Kind is the kind of the tasks that audit an app.
var Kind = queue.Kind[Request]{What: "an audit", Path: "/audit"}

// Request is the body of a task: the audit of an app.
type Request struct {
	App    string `json:"app"`
	Sample int    `json:"sample"` // users
}

// Task returns the task that audits users of an app. The queue creates it once
// for a date.
func Task(app, date string, sample int) (queue.Task, error) {
	return Kind.Task(app, Request{app, sample}, 0, "audit", app, date)
}

// Fault implements queue.Request.
func (r Request) Fault() string {
	if !config.ValidAppID(r.App) || r.Sample < 1 || r.Sample > MaxSample {
		return fmt.Sprintf("app must be well-formed and sample from 1 to %d", MaxSample)
	}
	return ""
}
