// Package purge is the task that removes a deleted user's events from the log.
// The function profiles enqueues it and the worker runs it. The user counts as
// deleted before the task is enqueued; the task only frees storage. The package
// keeps no data.
package purge

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/queue"
)

// Path is the worker's route for purges.
const Path = "/purge"

// Request is the body of a task: a user, and the time until which they are
// deleted.
type Request struct {
	App          string `json:"app"`
	User         string `json:"userToken"`
	DeletedUntil int64  `json:"deletedUntil"` // ms
}

// Task returns the task of a request. Equal requests give the same task.
func Task(r Request) (queue.Task, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return queue.Task{}, fmt.Errorf("encode purge: %w", err)
	}
	return queue.Task{Name: queue.TaskName("purge", r.App, r.User, strconv.FormatInt(r.DeletedUntil, 10)), Path: Path, Body: body}, nil
}

// Decode reads the body of a task. After an error the task can never run.
func Decode(body []byte) (Request, error) {
	var r Request
	if err := json.Unmarshal(body, &r); err != nil {
		return Request{}, fmt.Errorf("decode purge: %w", err)
	}
	if !config.ValidAppID(r.App) || !event.ValidUserToken(r.User) || r.DeletedUntil <= 0 {
		return Request{}, fmt.Errorf("decode purge: app, userToken and deletedUntil must be present and well-formed")
	}
	return r, nil
}
