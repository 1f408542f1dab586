package queue

import (
	"encoding/json"
	"fmt"
	"time"
)

// Request is the body of a task.
type Request interface {
	// Fault says what is missing or malformed, as the end of a sentence; empty if nothing is.
	Fault() string
}

// Kind is a kind of tasks: what errors call it, the worker's route for its tasks, and the type
// of their bodies.
type Kind[R Request] struct{ What, Path string }

// Task returns the task of a request for an app. TaskName makes its name of the parts.
func (k Kind[R]) Task(app string, r R, delay time.Duration, name ...string) (Task, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return Task{}, fmt.Errorf("encode the task of %s: %w", k.What, err)
	}
	return Task{Name: TaskName(name...), App: app, Path: k.Path, Body: body, Delay: delay}, nil
}

// Decode decodes the body of a task. A task that does not decode can never run.
func (k Kind[R]) Decode(body []byte) (r R, err error) {
	if err := json.Unmarshal(body, &r); err != nil {
		return r, fmt.Errorf("decode the task of %s: %w", k.What, err)
	}
	if fault := r.Fault(); fault != "" {
		return r, fmt.Errorf("decode the task of %s: %s", k.What, fault)
	}
	return r, nil
}
