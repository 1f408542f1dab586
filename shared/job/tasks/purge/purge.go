// Package purge is the task that removes a deleted user's events from the log, and from the refused
// and the recent events of the app, and the user from its hottest users. The function profiles
// enqueues it and the worker runs it. The user counts as deleted before the task is enqueued. Another task removes
// what a user has withdrawn their consent to. A second
// task follows an hour later, because such events may wait in the memory of a process. The package
// keeps no data.
package purge

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/queue"
)

// Kind is the kind of the tasks that delete the events of a deleted user.
var Kind = queue.Kind[Request]{What: "a purge", Path: "/purge"}

// Request is the body of a task: a user, and the time until which they are
// deleted.
type Request struct {
	App          string `json:"app"`
	User         string `json:"userToken"`
	DeletedUntil int64  `json:"deletedUntil"` // ms
	// Last is true in the second of the two tasks of a deletion.
	Last bool `json:"last,omitempty"`
	// Withdrawn is true for a user who is not deleted, but whose consents have changed: what counts for no purpose
	// goes. DeletedUntil is then when they changed.
	Withdrawn bool `json:"withdrawn,omitempty"`
	// Exported are the purposes of the surface export that the change has withdrawn: warehouses get a deletion.
	Exported []string `json:"exported,omitempty"`
}

// again is the time between the two tasks of a deletion. It is longer than packages
// refused and sampled keep an event in memory, so the last task finds those that were
// written after the first one.
const again = 70 * time.Minute

// Task returns the task of a request. Equal requests give the same task. The last
// task of a deletion waits for the time again.
func Task(r Request) (queue.Task, error) {
	of, delay := "purge", time.Duration(0)
	switch {
	case r.Withdrawn:
		of = "purge-withdrawn"
	case r.Last:
		of, delay = "purge-last", again
	}
	task, err := Kind.Task(r.App, r, delay, of, r.App, r.User, strconv.FormatInt(r.DeletedUntil, 10))
	task.Short = true
	return task, err
}

// Homes say where users live whom tasks name: profile.Residents do.
type Homes interface {
	// RegionOf returns the region in which a user lives; empty unless each user of the app has a region of their own.
	RegionOf(ctx context.Context, app, user string) (string, error)
}

// Enqueue enqueues the task of a request.
func Enqueue(ctx context.Context, q queue.Queue, homes Homes, r Request) error {
	task, err := Task(r)
	if err == nil {
		task.Region, err = homes.RegionOf(ctx, r.App, r.User)
	}
	if err == nil {
		err = q.Create(ctx, task)
	}
	if err != nil {
		return fmt.Errorf("enqueue the purge of a user: %w", err)
	}
	return nil
}

// Fault implements queue.Request.
func (r Request) Fault() string {
	if !config.ValidAppID(r.App) || !event.ValidUserToken(r.User) || r.DeletedUntil <= 0 {
		return "app, userToken and deletedUntil must be present and well-formed"
	}
	return ""
}
