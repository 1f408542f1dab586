package terraform

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Deployment is what functions.json says is deployed, but for Bigtable's tables.
type Deployment struct {
	Topics    Topics     `json:"topics"`
	Queue     string     `json:"queue"` // id of the queue of the worker's tasks
	Functions []Function `json:"functions"`
}

// Topics are those of Pub/Sub.
type Topics struct {
	Events      Topic `json:"events"`
	DeadLetters Topic `json:"deadLetters"`
}

// Topic is a topic and its one subscription, by their ids.
type Topic struct {
	Name         string `json:"name"`
	Subscription string `json:"subscription"`
}

// Function is one deployed function.
type Function struct {
	// Name is that of its package under functions/.
	Name string `json:"name"`
	// EntryPoint is the name under which the package registers it.
	EntryPoint string `json:"entryPoint"`
	Kind       Kind   `json:"kind"`
	// Env are the environment variables that the deployment sets.
	Env []string `json:"env"`
}

// Kind is who calls a function. Only a public one can be reached from outside.
type Kind string

// The kinds there are. A function that Cloud Tasks and Cloud Scheduler call is OfTasks.
const (
	Public      Kind = "public"
	OfPubSub    Kind = "pubsub"
	OfTasks     Kind = "tasks"
	OfScheduler Kind = "scheduler"
)

// Function finds a function by its name. The error names those there are.
func (d Deployment) Function(name string) (Function, error) {
	names := make([]string, len(d.Functions))
	for i, f := range d.Functions {
		if f.Name == name {
			return f, nil
		}
		names[i] = f.Name
	}
	return Function{}, fmt.Errorf("there is no function %q in terraform/functions.json, only %s", name, strings.Join(names, ", "))
}

// ReadDeployment is functions.json, decoded and checked.
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

// validate names all faults.
func (d Deployment) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for _, id := range []string{d.Topics.Events.Name, d.Topics.Events.Subscription, d.Topics.DeadLetters.Name, d.Topics.DeadLetters.Subscription, d.Queue} {
		if !resourceID.MatchString(id) {
			fault("%q is no id of a topic, subscription or queue", id)
		}
	}
	if len(d.Functions) == 0 {
		fault("it names no functions")
	}
	seen := map[string]bool{}
	twice := func(what string) bool {
		defer func() { seen[what] = true }()
		return seen[what]
	}
	for _, f := range d.Functions {
		if !packageName.MatchString(f.Name) || twice(f.Name) {
			fault("function %q: its name is no package's, or stands twice", f.Name)
		}
		if !entryPoint.MatchString(f.EntryPoint) || twice(f.EntryPoint) {
			fault("function %q: its entry point %q is no exported name, or stands twice", f.Name, f.EntryPoint)
		}
		switch f.Kind {
		case Public, OfPubSub, OfTasks, OfScheduler:
		default:
			fault("function %q: there is no kind %q", f.Name, f.Kind)
		}
		for _, v := range f.Env {
			if !variable.MatchString(v) || twice(f.Name+" "+v) {
				fault("function %q: %q is no variable, or stands twice", f.Name, v)
			}
		}
	}
	return errors.Join(faults...)
}
