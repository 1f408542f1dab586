package terraform

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Deployment is the content of functions.json: everything that is deployed, except
// Bigtable's tables.
type Deployment struct {
	Topics Topics `json:"topics"`
	Queue  string `json:"queue"` // id of the queue of the worker's tasks
	// PurgeQueue is the id of the queue of the worker's purges.
	PurgeQueue string `json:"purgeQueue"`
	// RefreshQueues are those of refreshes at the end of write windows.
	RefreshQueues RefreshQueues `json:"refreshQueues"`
	Functions     []Function    `json:"functions"`
}

// RefreshQueues are Count queues named Name-0, Name-1 and so on.
type RefreshQueues struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Topics are the Pub/Sub topics.
type Topics struct {
	Events Topic `json:"events"`
	// SlowEvents has the events of apps that are over their limit.
	SlowEvents  Topic `json:"slowEvents"`
	DeadLetters Topic `json:"deadLetters"`
	// Warehouse is the topic of rows for analysts, without its subscription.
	Warehouse string `json:"warehouse"`
}

// Topic holds the ids of a topic and of its only subscription.
type Topic struct {
	Name         string `json:"name"`
	Subscription string `json:"subscription"`
}

// Function is one deployed function.
type Function struct {
	// Name is the name of its package under functions/.
	Name string `json:"name"`
	// EntryPoint is the name under which the package registers it.
	EntryPoint string `json:"entryPoint"`
	Kind       Kind   `json:"kind"`
	Access     Access `json:"access"`
	// Env lists the environment variables that the deployment sets.
	Env []string `json:"env"`
	// Secrets lists those that it sets from Secret Manager.
	Secrets []string `json:"secrets"`
}

// Access is what a function may access, besides enqueuing tasks and publishing rows for analysts: it may
// where Env has the variables.
type Access struct {
	AppProfile string `json:"appProfile"` // of Bigtable
	// Reads and Writes are tables; "*" is all. A function may also read those that it writes.
	Reads  []string `json:"reads"`
	Writes []string `json:"writes"`
	// Configuration and Keys are roles on the databases of Firestore, without their service: viewer, user or none.
	Configuration string `json:"configuration"`
	Keys          string `json:"keys"`
	// Publishes says that it publishes events, and Buries that it publishes dead letters.
	Publishes bool `json:"publishes"`
	Buries    bool `json:"buries"`
}

// Variables are all variables that the deployment sets.
func (f Function) Variables() []string { return slices.Concat(f.Env, f.Secrets) }

// Kind says who calls a function. Clients can reach only a public function.
type Kind string

// The kinds of functions. OfTasks is called by Cloud Tasks and by Cloud Scheduler.
const (
	Public      Kind = "public"
	OfPubSub    Kind = "pubsub"
	OfTasks     Kind = "tasks"
	OfScheduler Kind = "scheduler"
)

// Function returns the function of that name. The error lists the known names.
func (d Deployment) Function(name string) (Function, error) {
	names := make([]string, len(d.Functions))
	for i, f := range d.Functions {
		if f.Name == name {
			return f, nil
		}
		names[i] = f.Name
	}
	return Function{}, fmt.Errorf("terraform/functions.json has no function %q, only %s", name, strings.Join(names, ", "))
}

// ReadDeployment decodes functions.json and validates it.
func ReadDeployment() (Deployment, error) { return decodeDeployment(functions) }

var (
	packageName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	entryPoint  = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	variable    = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	resourceID  = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

func decodeDeployment(text string) (Deployment, error) {
	var d Deployment
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return Deployment{}, fmt.Errorf("decode terraform/functions.json: %w", err)
	}
	if err := d.validate(); err != nil {
		return Deployment{}, fmt.Errorf("terraform/functions.json: %w", err)
	}
	return d, nil
}

// validate returns all faults, joined.
func (d Deployment) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for _, id := range []string{d.Topics.Events.Name, d.Topics.Events.Subscription, d.Topics.SlowEvents.Name,
		d.Topics.SlowEvents.Subscription,
		d.Topics.DeadLetters.Name, d.Topics.DeadLetters.Subscription, d.Topics.Warehouse, d.Queue, d.PurgeQueue} {
		if !resourceID.MatchString(id) {
			fault("%q is not an id of a topic, subscription or queue", id)
		}
	}
	if q := d.RefreshQueues; !resourceID.MatchString(q.Name) || q.Count < 1 {
		fault("refreshQueues of name %q and count %d: want an id of a queue, and 1 or more", q.Name, q.Count)
	}
	if len(d.Functions) == 0 {
		fault("it lists no functions")
	}
	seen := map[string]bool{}
	repeated := func(what string) bool {
		defer func() { seen[what] = true }()
		return seen[what]
	}
	for _, f := range d.Functions {
		if !packageName.MatchString(f.Name) || repeated(f.Name) {
			fault("function %q: the name is not a package name, or is repeated", f.Name)
		}
		if !entryPoint.MatchString(f.EntryPoint) || repeated(f.EntryPoint) {
			fault("function %q: the entry point %q is not an exported name, or is repeated", f.Name, f.EntryPoint)
		}
		switch f.Kind {
		case Public, OfPubSub, OfTasks, OfScheduler:
		default:
			fault("function %q: unknown kind %q", f.Name, f.Kind)
		}
		for _, v := range f.Variables() {
			if !variable.MatchString(v) || repeated(f.Name+" "+v) {
				fault("function %q: %q is not an environment variable, or is repeated", f.Name, v)
			}
		}
	}
	return errors.Join(faults...)
}
