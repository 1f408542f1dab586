package audit

import (
	"encoding/json"
	"fmt"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/queue"
)

// Path is where the worker takes orders.
const Path = "/audit"

// Order is one app's audit as the worker takes it.
type Order struct {
	App    string `json:"app"`
	Sample int    `json:"sample"` // users
}

// Task is the order to audit users of an app, once for a date however often it is
// asked for.
func Task(app, date string, sample int) (queue.Task, error) {
	body, err := json.Marshal(Order{app, sample})
	if err != nil {
		return queue.Task{}, fmt.Errorf("encode audit: %w", err)
	}
	return queue.Task{Name: queue.TaskName("audit", app, date), Path: Path, Body: body}, nil
}

// Decode reads an order. An error means that it can never be carried out.
func Decode(body []byte) (Order, error) {
	var o Order
	if err := json.Unmarshal(body, &o); err != nil {
		return o, fmt.Errorf("decode audit: %w", err)
	}
	if !config.ValidAppID(o.App) || o.Sample < 1 || o.Sample > MaxSample {
		return o, fmt.Errorf("decode audit: app must be well-formed and sample from 1 to %d", MaxSample)
	}
	return o, nil
}
