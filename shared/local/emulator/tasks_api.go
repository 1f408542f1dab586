package emulator

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// maxPage is the largest number of tasks in a page of ListTasks.
const maxPage = 1000

// CreateQueue makes a queue and starts its loop.
func (s *taskService) CreateQueue(
	_ context.Context, req *cloudtaskspb.CreateQueueRequest,
) (*cloudtaskspb.Queue, error) {
	if !strings.HasPrefix(req.GetQueue().GetName(), req.GetParent()+"/queues/") {
		return nil, status.Errorf(codes.InvalidArgument, "queue %q is not of %q", req.GetQueue().GetName(), req.GetParent())
	}
	return s.addQueue(req.GetQueue())
}

func (s *taskService) addQueue(queue *cloudtaskspb.Queue) (*cloudtaskspb.Queue, error) {
	if err := validateQueue(queue); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues[queue.GetName()] != nil {
		return nil, status.Errorf(codes.AlreadyExists, "queue %s exists", queue.GetName())
	}
	q := newTaskQueue(proto.CloneOf(queue))
	if err := s.kept.restore(q); err != nil {
		return nil, status.Errorf(codes.Internal, "restore the tasks of queue %s: %v", queue.GetName(), err)
	}
	s.queues[queue.GetName()] = q
	s.running.Go(func() { s.loop(q) })
	return proto.CloneOf(q.pb), nil
}

// GetQueue returns a queue with all its settings.
func (s *taskService) GetQueue(_ context.Context, req *cloudtaskspb.GetQueueRequest) (*cloudtaskspb.Queue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(req.GetName())
	if err != nil {
		return nil, err
	}
	return proto.CloneOf(q.pb), nil
}

// queue finds a queue; the lock must be held.
func (s *taskService) queue(name string) (*taskQueue, error) {
	q := s.queues[name]
	if q == nil {
		return nil, status.Errorf(codes.NotFound, "queue %s does not exist", name)
	}
	return q, nil
}

// task finds a live task by its full name; the lock must be held.
func (s *taskService) task(name string) (*taskQueue, *task, error) {
	queue, _, ok := strings.Cut(name, "/tasks/")
	if !ok {
		return nil, nil, status.Errorf(codes.InvalidArgument, "task name %q is not QUEUE/tasks/TASK", name)
	}
	q, err := s.queue(queue)
	if err != nil {
		return nil, nil, err
	}
	t := q.live[name]
	if t == nil {
		return nil, nil, status.Errorf(codes.NotFound, "task %s does not exist", name)
	}
	return q, t, nil
}

// CreateTask adds a task to a queue, once for each name.
func (s *taskService) CreateTask(_ context.Context, req *cloudtaskspb.CreateTaskRequest) (*cloudtaskspb.Task, error) {
	now := time.Now()
	if err := validateTask(req.GetParent(), req.GetTask(), now); err != nil {
		return nil, err
	}
	// No other task of the name may begin in between.
	s.creating.Lock()
	defer s.creating.Unlock()
	t, err := s.newTask(req, now)
	if err != nil {
		return nil, err
	}
	if err := s.kept.keep(t); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(req.GetParent())
	if err != nil {
		return nil, err
	}
	q.add(t)
	return view(t, req.GetResponseView()), nil
}

// newTask makes a task whose name is free.
func (s *taskService) newTask(req *cloudtaskspb.CreateTaskRequest, now time.Time) (*cloudtaskspb.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(req.GetParent())
	if err != nil {
		return nil, err
	}
	name := req.GetTask().GetName()
	if name == "" {
		name = req.GetParent() + "/tasks/" + rand.Text()
	}
	if q.live[name] != nil || q.finished.has(name, now) {
		return nil, status.Errorf(codes.AlreadyExists, "task %s exists or has recently ended", name)
	}
	// Like Cloud Tasks, ignore fields that only the service sets.
	want := proto.CloneOf(req.GetTask())
	t := &cloudtaskspb.Task{
		Name:             name,
		MessageType:      want.GetMessageType(),
		ScheduleTime:     want.GetScheduleTime(),
		CreateTime:       timestamppb.New(now.Truncate(time.Second)),
		DispatchDeadline: want.GetDispatchDeadline(),
		RetryConfig:      want.GetRetryConfig(),
	}
	if t.ScheduleTime == nil || t.ScheduleTime.AsTime().Before(now) {
		t.ScheduleTime = timestamppb.New(now)
	}
	return t, nil
}

// GetTask returns a task that has not ended.
func (s *taskService) GetTask(_ context.Context, req *cloudtaskspb.GetTaskRequest) (*cloudtaskspb.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, t, err := s.task(req.GetName())
	if err != nil {
		return nil, err
	}
	return view(t.pb, req.GetResponseView()), nil
}

// ListTasks returns a queue's tasks in the order of their names.
func (s *taskService) ListTasks(
	_ context.Context, req *cloudtaskspb.ListTasksRequest,
) (*cloudtaskspb.ListTasksResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(req.GetParent())
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range q.live {
		if name > req.GetPageToken() { // the token is the last name of the page before
			names = append(names, name)
		}
	}
	slices.Sort(names)
	size := int(req.GetPageSize())
	if size <= 0 || size > maxPage {
		size = maxPage
	}
	resp := &cloudtaskspb.ListTasksResponse{}
	if len(names) > size {
		names = names[:size]
		resp.NextPageToken = names[size-1]
	}
	for _, name := range names {
		resp.Tasks = append(resp.Tasks, view(q.live[name].pb, req.GetResponseView()))
	}
	return resp, nil
}

// redacted stands for the value of an Authorization header.
const redacted = "redacted"

// view returns a copy of a task without credentials: a reader of tasks must not
// be able to call their worker. Only a full view has the body.
func view(t *cloudtaskspb.Task, v cloudtaskspb.Task_View) *cloudtaskspb.Task {
	t = proto.CloneOf(t)
	t.View = v
	for name := range t.GetHttpRequest().GetHeaders() {
		if strings.EqualFold(name, "Authorization") {
			t.GetHttpRequest().Headers[name] = redacted
		}
	}
	if v != cloudtaskspb.Task_FULL {
		t.View = cloudtaskspb.Task_BASIC
		t.GetHttpRequest().Body = nil
	}
	return t
}

// DeleteTask deletes a task. A running attempt completes, and none follows.
func (s *taskService) DeleteTask(_ context.Context, req *cloudtaskspb.DeleteTaskRequest) (*emptypb.Empty, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, t, err := s.task(req.GetName())
	if err != nil {
		return nil, err
	}
	now := time.Now()
	q.remove(t, now)
	s.kept.ended(t.pb.GetName(), now, q.finished.expired(), s.log)
	s.changed.broadcast()
	return &emptypb.Empty{}, nil
}
