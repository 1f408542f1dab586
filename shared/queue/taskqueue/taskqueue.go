// Package taskqueue is a queue.Queue on Cloud Tasks. It is the only place that
// knows Cloud Tasks. It keeps no data of its own; the tasks live in the queue
// that the configuration names.
package taskqueue

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"net/url"
	"regexp"
	"strings"
	"time"

	cloudtasks "cloud.google.com/go/cloudtasks/apiv2"
	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/telemetry"
)

// Config names the queue and the worker.
type Config struct {
	// Queue is the full name of the queue: projects/P/locations/L/queues/Q.
	Queue string `env:"TASKS_QUEUE,required"`
	// Purges is the full name of the queue of purges. Default: Queue.
	Purges string `env:"TASKS_PURGE_QUEUE"`
	// Refreshes are the full names of the queues of refreshes. Default: Queue.
	Refreshes []string `env:"TASKS_REFRESH_QUEUES"`
	// Dedicated are the apps whose tasks go to queues of their own: Queue and Purges
	// with the customer's name. These queues have the address of the customer's worker.
	Dedicated config.Dedicated `env:"DEDICATED_APPS"`
	// WorkerURL is the base URL of the worker; a task's path is appended to it.
	WorkerURL string `env:"WORKER_URL,required"`
	// ServiceAccount is the e-mail address of the account under which tasks
	// call the worker. It needs the permission to invoke the worker. Without an
	// account a task carries no identity, which only a local worker accepts.
	ServiceAccount string `env:"TASKS_SERVICE_ACCOUNT"`
	// Audience is the audience of the identity token. Default: WorkerURL, which
	// is what Cloud Run wants; Cloud Tasks' own default would include the path.
	Audience string `env:"TASKS_AUDIENCE"`
	// Regions have queues and workers of their own. Where returns the region to whose queues
	// the tasks of an app go; nil: to those of this configuration.
	Regions config.Regions                                        `env:"REGIONS"`
	Where   func(ctx context.Context, app string) (string, error) `env:"-"`
	// Every task carries Header. The local stack passes its worker's token
	// here.
	Header map[string]string
}

// In returns the configuration with Where.
func (c Config) In(where func(ctx context.Context, app string) (string, error)) Config {
	c.Where = where
	return c
}

var queueName = regexp.MustCompile(`^projects/[^/]+/locations/[^/]+/queues/[A-Za-z0-9-]{1,100}$`)

// Validate returns an error that names every fault of the configuration.
func (c Config) Validate() error {
	var faults []error
	if !queueName.MatchString(c.Queue) {
		faults = append(faults, fmt.Errorf("TASKS_QUEUE %q is not projects/P/locations/L/queues/Q", c.Queue))
	}
	if c.Purges != "" && !queueName.MatchString(c.Purges) {
		faults = append(faults, fmt.Errorf("TASKS_PURGE_QUEUE %q is not projects/P/locations/L/queues/Q", c.Purges))
	}
	for _, name := range c.Refreshes {
		if !queueName.MatchString(name) {
			faults = append(faults, fmt.Errorf("TASKS_REFRESH_QUEUES holds %q, which is not "+
				"projects/P/locations/L/queues/Q", name))
		}
	}
	u, err := url.Parse(c.WorkerURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.RawQuery != "" || u.Fragment != "" {
		faults = append(faults, fmt.Errorf("WORKER_URL %q is not an http or https URL without a query", c.WorkerURL))
	}
	return errors.Join(faults...)
}

// Client is a queue on Cloud Tasks that owns its connection.
type Client struct {
	tasks
	client *cloudtasks.Client
}

var _ queue.Queue = (*Client)(nil)

// Open makes a client; the first task connects. The error names the fault of
// the configuration or the credentials.
func Open(ctx context.Context, cfg Config, opts ...option.ClientOption) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open the task queue: %w", err)
	}
	client, err := cloudtasks.NewClient(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("open the task queue %s: %w", cfg.Queue, err)
	}
	return &Client{tasks{client, cfg}, client}, nil
}

// Close releases the connection.
func (c *Client) Close() error {
	if err := c.client.Close(); err != nil {
		return fmt.Errorf("close the task queue: %w", err)
	}
	return nil
}

// New returns the queue of a configuration, which must be valid, on a client
// that the caller closes.
func New(client *cloudtasks.Client, cfg Config) queue.Queue { return tasks{client, cfg} }

// tasks is a queue on Cloud Tasks.
type tasks struct {
	client *cloudtasks.Client
	cfg    Config
}

// maxWait bounds a Create whose context has no deadline, retries included.
const maxWait = 20 * time.Second

// retry repeats a failed call. The client library never does, because the
// failed call may have created the task. Our tasks have names, so a second call
// creates no second task. ResourceExhausted means that requests exceed a quota,
// which passes too.
var retry = gax.WithRetry(func() gax.Retryer {
	return gax.OnCodes([]codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.ResourceExhausted},
		gax.Backoff{Initial: 50 * time.Millisecond, Max: 2 * time.Second, Multiplier: 2})
})

// Create adds a task to its queue.
func (q tasks) Create(ctx context.Context, task queue.Task) error {
	if err := task.Validate(); err != nil {
		return fmt.Errorf("create task %q: %w", task.Name, err)
	}
	there, err := q.in(ctx, task)
	if err != nil {
		return fmt.Errorf("create task %s of app %s: %w", task.Name, task.App, err)
	}
	for _, in := range there.cfg.of(task) {
		if err = there.create(ctx, in, task); !unavailable(err) {
			break
		}
	}
	return err
}

// in returns the queues of the region to which a task goes: the tasks of an app go to one.
func (q tasks) in(ctx context.Context, task queue.Task) (tasks, error) {
	if q.cfg.Where == nil || len(q.cfg.Regions) == 0 || task.App == "" {
		return q, nil
	}
	name := task.Region
	if name == "" {
		var err error
		if name, err = q.cfg.Where(ctx, task.App); err != nil {
			return q, err
		}
	}
	region, ok := q.cfg.Regions.Find(name)
	if !ok {
		return q, q.cfg.Regions.Check(name)
	}
	q.cfg = q.cfg.at(region)
	return q, nil
}

// at returns the configuration of the queues and the worker of a region.
func (c Config) at(r config.Region) Config {
	if r.Worker != "" {
		c.WorkerURL = r.Worker
	}
	if r.Location == "" {
		return c
	}
	moved := func(name string) string {
		parts := strings.Split(name, "/")
		if len(parts) > 3 {
			parts[3] = r.Location // projects/P/locations/L/queues/Q
		}
		return strings.Join(parts, "/")
	}
	c.Queue, c.Purges = moved(c.Queue), moved(c.Purges)
	refreshes := make([]string, len(c.Refreshes))
	for i, name := range c.Refreshes {
		refreshes[i] = moved(name)
	}
	c.Refreshes = refreshes
	return c
}

// Customer returns the name of the customer who has the queues of the app to
// themselves, or "".
func (q tasks) Customer(app string) string { return q.cfg.Dedicated[app] }

// of returns the names of the task's queue and, in order, of those that take it
// where that one cannot be used. The last one is the common queue.
func (c Config) of(task queue.Task) []string {
	common := c.Queue
	if task.Short && c.Purges != "" {
		common = c.Purges
	}
	if n := uint32(len(c.Refreshes)); task.Refresh && n > 0 {
		common = c.Refreshes[crc32.ChecksumIEEE([]byte(task.Name))%n]
	}
	var names []string
	if own, ok := c.Dedicated.Named(common, task.App); ok {
		names = append(names, own)
	}
	if names = append(names, common); common != c.Queue {
		names = append(names, c.Queue)
	}
	return names
}

// unavailable reports whether an error says that the queue does not exist, or
// that the caller may not use it. A deployment makes a queue and its grants
// beside the functions, which may be first. Cloud Tasks answers NotFound or
// FailedPrecondition where a queue does not exist.
func unavailable(err error) bool {
	switch status.Code(err) {
	case codes.NotFound, codes.FailedPrecondition, codes.PermissionDenied:
		return true
	}
	return false
}

// create adds a task to the queue of a name.
func (q tasks) create(ctx context.Context, in string, task queue.Task) error {
	_, err := q.client.CreateTask(ctx, q.request(ctx, in, task), retry, gax.WithTimeout(maxWait))
	switch status.Code(err) {
	case codes.OK, codes.AlreadyExists:
		return nil
	case codes.InvalidArgument:
		return fmt.Errorf("create task %s in %s: %w: %w", task.Name, in, queue.ErrInvalid, err)
	}
	return fmt.Errorf("create task %s in %s: %w", task.Name, in, err)
}

func (q tasks) request(ctx context.Context, in string, task queue.Task) *cloudtaskspb.CreateTaskRequest {
	worker := strings.TrimSuffix(q.cfg.WorkerURL, "/")
	headers := map[string]string{}
	maps.Copy(headers, q.cfg.Header)
	headers["Content-Type"] = "application/json"
	if cause := telemetry.Cause(ctx); cause != "" {
		headers[telemetry.CauseHeader] = cause
	}
	post := &cloudtaskspb.HttpRequest{
		HttpMethod: cloudtaskspb.HttpMethod_POST,
		Url:        worker + task.Path,
		Headers:    headers,
		Body:       task.Body,
	}
	if q.cfg.ServiceAccount != "" {
		token := &cloudtaskspb.OidcToken{ServiceAccountEmail: q.cfg.ServiceAccount, Audience: q.cfg.Audience}
		if token.Audience == "" {
			token.Audience = worker
		}
		post.AuthorizationHeader = &cloudtaskspb.HttpRequest_OidcToken{OidcToken: token}
	}
	t := &cloudtaskspb.Task{
		Name:        in + "/tasks/" + task.Name,
		MessageType: &cloudtaskspb.Task_HttpRequest{HttpRequest: post},
	}
	if task.Delay > 0 {
		t.ScheduleTime = timestamppb.New(time.Now().Add(task.Delay))
	}
	return &cloudtaskspb.CreateTaskRequest{Parent: in, Task: t}
}
