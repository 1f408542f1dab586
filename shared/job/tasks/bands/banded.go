// Package bands is the task that follows a change of an index's numeric bands: it
// starts the re-enrichment that gives logged events the new bands.
//
// The function catalog enqueues the task, and so does the first re-enrichment, for the
// last one (see package job/reenrich). The worker runs it. The package keeps no data.
package bands

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/queue"
)

// Path is the worker's route for the task.
const Path = "/banded"

// request is the body of a task.
type request struct {
	App string `json:"app"`
}

// Task returns the task that follows the change of an index's bands to a version.
func Task(app, index string, version int64) (queue.Task, error) {
	return task(app, 0, "banded", app, index, strconv.FormatInt(version, 10))
}

// Last returns the task that starts the last re-enrichment, some time after a first one.
func Last(app, first string, delay time.Duration) (queue.Task, error) {
	return task(app, delay, "banded-last", app, first)
}

func task(app string, delay time.Duration, name ...string) (queue.Task, error) {
	body, err := json.Marshal(request{app})
	if err != nil {
		return queue.Task{}, fmt.Errorf("encode the task of numeric bands: %w", err)
	}
	return queue.Task{Name: queue.TaskName(name...), App: app, Path: Path, Body: body, Delay: delay}, nil
}

// Decode reads the app from the body of a task. After an error the task can never run.
func Decode(body []byte) (app string, err error) {
	var r request
	if err := json.Unmarshal(body, &r); err != nil {
		return "", fmt.Errorf("decode the task of numeric bands: %w", err)
	}
	if !config.ValidAppID(r.App) {
		return "", errors.New("decode the task of numeric bands: app must be present and well-formed")
	}
	return r.App, nil
}
