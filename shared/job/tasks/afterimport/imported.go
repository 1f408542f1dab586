// Package afterimport is the task that follows an app's import of history. Once no
// import has come for a while it starts a recompute, which folds the history of
// every user, and a build of crowd statistics. So an import in many pieces starts
// one of each. If the client has said that the import ended, both exist already, and
// the task finds them. The task also follows a load of objects into an index: it starts a build
// of the index's crowd statistics if it has none, and if the load has made it grow.
//
// The functions imports and catalog note the times of imports in the table crowd and
// enqueue the task, at most once a minute for each app or index. The worker runs it.
package afterimport

import (
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/queue"
)

// Kind is the kind of the tasks that look again after an import.
var Kind = queue.Kind[Request]{What: "an import", Path: "/imported"}

// Quiet is the time without an import after which the jobs start.
const Quiet = time.Minute

// maxLooks is how many tasks, a minute apart, wait for another recompute of the app
// to end.
const maxLooks = 24 * 60

// Request is the body of a task.
type Request struct {
	App string `json:"app"`
	// Index is that of a load of objects, "" after an import of events.
	Index string `json:"index,omitempty"`
	// Last is the time of the last import (ms) that an earlier task has seen, Looks
	// how many tasks have seen it. Both are 0 in the first task.
	Last  int64 `json:"last,omitempty"`
	Looks int   `json:"looks,omitempty"`
}

// slotOf is the number of the minute of an import. Imports of one slot share a
// task.
func slotOf(at time.Time) int64 { return at.UnixMilli() / Quiet.Milliseconds() }

// task returns the task of the imports of a slot.
func task(app, index string, slot int64) (queue.Task, error) {
	return Kind.Task(app, Request{App: app, Index: index}, Quiet, "imported", app, index, strconv.FormatInt(slot, 10))
}

// Exhausted reports whether so many tasks have seen the app's last import, at the
// given time, that none is to follow.
func (r Request) Exhausted(last time.Time) bool {
	return r.Last == last.UnixMilli() && r.Looks >= maxLooks
}

// Later returns a task that checks again after wait. last is the time of the app's last
// import; tasks that see the same last import for the first time share the task. It never
// has the name of the task of r, which may run before its time by another machine's clock:
// a name is used once.
func (r Request) Later(last time.Time, wait time.Duration) (queue.Task, error) {
	later := Request{App: r.App, Index: r.Index, Last: last.UnixMilli(), Looks: 1}
	if r.Last == later.Last {
		later.Looks = r.Looks + 1
	}
	return Kind.Task(r.App, later, wait, "imported-later", r.App, r.Index, strconv.FormatInt(later.Last, 10),
		strconv.Itoa(later.Looks))
}

// Fault implements queue.Request.
func (r Request) Fault() string {
	if !config.ValidAppID(r.App) {
		return "app must be present and well-formed"
	}
	return ""
}
