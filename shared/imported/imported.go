// Package imported is the task that follows an app's import of history: it starts
// a build of crowd statistics once no import has come for a while, so that an
// import in many pieces starts one build.
//
// The function imports notes the time of each import in the table crowd and
// enqueues the task, at most once a minute for each app. The worker runs it. The
// package keeps no data.
package imported

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/queue"
)

// Path is the worker's route for the task.
const Path = "/imported"

// Quiet is the time without an import after which the build starts.
const Quiet = time.Minute

// Request is the body of a task.
type Request struct {
	App string `json:"app"`
}

// Slot is the number of the minute of an import. Imports of one slot share a
// task.
func Slot(at time.Time) int64 { return at.UnixMilli() / Quiet.Milliseconds() }

// Task returns the task of an app's imports in a slot.
func Task(app string, slot int64) (queue.Task, error) {
	return task(app, Quiet, "imported", app, strconv.FormatInt(slot, 10))
}

// Later returns the task that looks again after wait, because the app's last
// import at the given time is too recent.
func Later(app string, last time.Time, wait time.Duration) (queue.Task, error) {
	return task(app, wait, "imported-later", app, strconv.FormatInt(last.UnixMilli(), 10))
}

func task(app string, delay time.Duration, name ...string) (queue.Task, error) {
	body, err := json.Marshal(Request{app})
	if err != nil {
		return queue.Task{}, fmt.Errorf("encode the task of an import: %w", err)
	}
	return queue.Task{Name: queue.TaskName(name...), Path: Path, Body: body, Delay: delay}, nil
}

// Decode reads the body of a task. After an error the task can never run.
func Decode(body []byte) (Request, error) {
	var r Request
	if err := json.Unmarshal(body, &r); err != nil {
		return Request{}, fmt.Errorf("decode the task of an import: %w", err)
	}
	if !config.ValidAppID(r.App) {
		return Request{}, fmt.Errorf("decode the task of an import: app must be present and well-formed")
	}
	return r, nil
}
