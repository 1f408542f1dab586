package emulator

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"google.golang.org/grpc"
)

// TasksConfig configures StartTasks. The zero value is ready.
type TasksConfig struct {
	// Queues exist from the start, as if CreateQueue had made them.
	Queues []*cloudtaskspb.Queue
	// Transport carries requests to workers. Default: HTTP over the network.
	Transport http.RoundTripper
	// Kept keeps tasks over a restart. nil: they end with the server.
	Kept *KeptTasks
	// Server are options of the gRPC server, such as Guard.
	Server []grpc.ServerOption
	// Log gets failed attempts and tasks that the server gives up. By default the
	// server logs nothing.
	Log *slog.Logger
}

// Tasks is a Cloud Tasks server in this process. It has CreateQueue, GetQueue,
// CreateTask, GetTask, ListTasks and DeleteTask, for HTTP tasks only. Like
// Cloud Tasks it deduplicates names, applies rate limits and retry settings,
// and makes the same requests. It differs in three ways. It makes no tokens, so
// an Authorization header comes from the task, and no answer shows its value. It
// does not throttle new queues or failing workers. It keeps waits of less than a
// second, which Cloud Tasks rounds.
type Tasks struct {
	// Addr is the host:port the server listens on, for option.WithEndpoint.
	Addr    string
	server  *grpc.Server
	service *taskService
}

// StartTasks starts a server on a free port of 127.0.0.1. The error may name a
// queue that is not valid.
func StartTasks(cfg TasksConfig) (*Tasks, error) {
	if cfg.Transport == nil {
		cfg.Transport = &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	t := &Tasks{
		server: grpc.NewServer(slices.Concat(expand(cfg.Server).known, []grpc.ServerOption{grpc.WaitForHandlers(true)})...),
		service: &taskService{
			ctx:    ctx,
			stop:   stop,
			sender: newTaskSender(cfg.Transport),
			log:    cfg.Log,
			kept:   cfg.Kept,
			queues: map[string]*taskQueue{},
		},
	}
	for _, q := range cfg.Queues {
		if _, err := t.service.addQueue(q); err != nil {
			t.service.close()
			return nil, fmt.Errorf("start the Cloud Tasks emulator: %w", err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.service.close()
		return nil, fmt.Errorf("start the Cloud Tasks emulator: %w", err)
	}
	t.Addr = listener.Addr().String()
	cloudtaskspb.RegisterCloudTasksServer(t.server, t.service)
	// Serve returns when Close stops the server.
	go func() { _ = t.server.Serve(listener) }()
	return t, nil
}

// Idle returns nil when no task is due, under way or waiting for a retry. A task
// with a schedule time in the future does not count. The only error is the end
// of ctx.
func (t *Tasks) Idle(ctx context.Context) error {
	return t.service.changed.await(ctx, "no task is due", t.service.idle)
}

// Close stops the server and cancels running requests. Remaining tasks are
// lost, unless they are kept.
func (t *Tasks) Close() {
	t.server.Stop()
	t.service.close()
}

// taskService is the service and the state behind it.
type taskService struct {
	cloudtaskspb.UnimplementedCloudTasksServer
	ctx     context.Context // ends at Close
	stop    context.CancelFunc
	running sync.WaitGroup // the queues' loops and the requests under way
	sender  *taskSender
	log     *slog.Logger
	kept    *KeptTasks
	// changed is broadcast when a task has been attempted or deleted.
	changed signal

	creating sync.Mutex // taken before mu by one creation at a time
	mu       sync.Mutex
	queues   map[string]*taskQueue // by full name
}

func (s *taskService) close() {
	s.stop()
	s.running.Wait()
	s.sender.close()
}

func (s *taskService) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, q := range s.queues {
		if q.busy(now) {
			return false
		}
	}
	return true
}

// loop sends a queue's tasks when they are due, within its rate limits.
func (s *taskService) loop(q *taskQueue) {
	for {
		s.mu.Lock()
		t, wait := q.next(time.Now())
		s.mu.Unlock()
		if t != nil {
			s.running.Go(func() { s.attempt(q, t) })
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-q.wake:
		case <-s.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// attempt sends a task once and records the result.
func (s *taskService) attempt(q *taskQueue, t *task) {
	result := s.sender.send(s.ctx, q, t)
	s.mu.Lock()
	fate := s.settle(q, t, result, time.Now())
	s.mu.Unlock()
	q.poke()
	s.changed.broadcast()
	switch {
	case s.ctx.Err() != nil, fate == taskDone:
	case fate == taskRetried:
		s.log.Warn("task failed, retrying", "task", t.pb.GetName(), "error", result.err)
	case fate == taskGivenUp:
		s.log.Error("task failed, giving up", "task", t.pb.GetName(), "error", result.err)
	}
}

// settle records an attempt; the lock must be held.
func (s *taskService) settle(q *taskQueue, t *task, result taskResult, now time.Time) taskFate {
	if s.ctx.Err() != nil && result.err != nil {
		return taskRetried // Close has canceled the attempt: a kept task is as it was
	}
	ended := t.ended
	fate := q.settle(t, result, now)
	if t.ended && !ended {
		s.kept.ended(t.pb.GetName(), now, q.finished.expired(), s.log)
	}
	return fate
}
