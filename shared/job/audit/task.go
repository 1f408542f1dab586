package audit

import (
	"encoding/json"
	"fmt"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/queue"
)

// Path is the worker's route for audits.
const Path = "/audit"

// Request is the body of a task: the audit of an app.
type Request struct {
	App    string `json:"app"`
	Sample int    `json:"sample"` // users
}

// Task returns the task that audits users of an app. The queue creates it once
// for a date.
func Task(app, date string, sample int) (queue.Task, error) {
	body, err := json.Marshal(Request{app, sample})
	if err != nil {
		return queue.Task{}, fmt.Errorf("encode audit: %w", err)
	}
	return queue.Task{Name: queue.TaskName("audit", app, date), App: app, Path: Path, Body: body}, nil
}

// Decode decodes the body of a task. A task that does not decode can never run.
func Decode(body []byte) (Request, error) {
	var r Request
	if err := json.Unmarshal(body, &r); err != nil {
		return r, fmt.Errorf("decode audit: %w", err)
	}
	if !config.ValidAppID(r.App) || r.Sample < 1 || r.Sample > MaxSample {
		return r, fmt.Errorf("decode audit: app must be well-formed and sample from 1 to %d", MaxSample)
	}
	return r, nil
}
