// Package purge is the order to remove a deleted user's events from the log: a
// named Cloud Task, made by profiles and carried out by worker. The deletion
// itself is in force before the order is given; the order keeps no data.
package purge

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/queue"
)

// Path is where the worker takes orders.
const Path = "/purge"

// Order names a user and the time until which he is deleted.
type Order struct {
	App          string `json:"app"`
	User         string `json:"userToken"`
	DeletedUntil int64  `json:"deletedUntil"` // ms
}

// Task is the order as a task. The same order is the same task.
func Task(o Order) (queue.Task, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return queue.Task{}, fmt.Errorf("encode purge: %w", err)
	}
	return queue.Task{Name: queue.TaskName("purge", o.App, o.User, strconv.FormatInt(o.DeletedUntil, 10)), Path: Path, Body: body}, nil
}

// Decode reads an order. An error means that it can never be carried out.
func Decode(body []byte) (Order, error) {
	var o Order
	if err := json.Unmarshal(body, &o); err != nil {
		return Order{}, fmt.Errorf("decode purge: %w", err)
	}
	if !auth.ValidAppID(o.App) || !event.ValidUserToken(o.User) || o.DeletedUntil <= 0 {
		return Order{}, fmt.Errorf("decode purge: app, userToken and deletedUntil must be there and well-formed")
	}
	return o, nil
}
