// Package relocate is the task that goes on with the move of a user to another region, and removes what the regions
// that they have left still hold of them. The function profiles enqueues it, and worker runs it. A task that is lost
// costs time only: the nightly round does the same. The package keeps no data.
package relocate

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/queue"
)

// Kind is the kind of the tasks that move users.
var Kind = queue.Kind[Request]{What: "the move of a user", Path: "/relocate"}

// Request is the body of a task.
type Request struct {
	App  string `json:"app"`
	User string `json:"userToken"`
	// To is the region to which the user moves. Empty: they have arrived, and what they have left is removed.
	To string `json:"to,omitempty"`
	// Begun is when the move began (ms), and Step counts the tasks of a move: both are part of their names.
	Begun int64 `json:"begun"`
	Step  int   `json:"step,omitempty"`
}

// maxSteps bounds the tasks of a move. What is left after them the nightly round removes.
const maxSteps = 20

// Fault implements queue.Request.
func (r Request) Fault() string {
	if !config.ValidAppID(r.App) || !event.ValidUserToken(r.User) || r.Begun <= 0 ||
		r.To != "" && !config.ValidRegion(r.To) {
		return "app, userToken and begun must be present and well-formed, and to the name of a region"
	}
	return ""
}

// Next returns the request of the task that follows, once the user lives in the region of the move.
func (r Request) Next() (next Request, more bool) {
	r.To, r.Step = "", r.Step+1
	return r, r.Step < maxSteps
}

// Enqueue enqueues the task of a request in a region, in which the user lives, for after a delay.
func Enqueue(ctx context.Context, q queue.Queue, region string, r Request, delay time.Duration) error {
	task, err := Kind.Task(r.App, r, delay, "relocate", r.App, r.User, strconv.FormatInt(r.Begun, 10),
		strconv.Itoa(r.Step))
	task.Region = region
	if err == nil {
		err = q.Create(ctx, task)
	}
	if err != nil {
		return fmt.Errorf("enqueue the move of a user: %w", err)
	}
	return nil
}
