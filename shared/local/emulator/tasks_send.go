package emulator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
)

// defaultDeadline is the time limit of a request whose task sets none.
const defaultDeadline = 10 * time.Minute

// taskResult is the result of one attempt.
type taskResult struct {
	code       int // the HTTP status; 0 without an answer
	retryAfter time.Duration
	err        error // nil: the worker has taken the task
}

// status returns the result as Cloud Tasks reports it.
func (r taskResult) status() *rpcstatus.Status {
	switch {
	case r.err == nil:
		return &rpcstatus.Status{Code: int32(codes.OK)}
	case errors.Is(r.err, context.DeadlineExceeded):
		return &rpcstatus.Status{Code: int32(codes.DeadlineExceeded), Message: r.err.Error()}
	case r.code == 0:
		return &rpcstatus.Status{Code: int32(codes.Unavailable), Message: r.err.Error()}
	}
	return &rpcstatus.Status{Code: int32(codes.Unknown), Message: r.err.Error()}
}

// reason returns the result in a word or two, for a header.
func (r taskResult) reason() string {
	switch {
	case r.code != 0:
		return fmt.Sprintf("HTTP status %d", r.code)
	case errors.Is(r.err, context.DeadlineExceeded):
		return "DEADLINE_EXCEEDED"
	}
	return "UNAVAILABLE"
}

// taskSender makes the requests of tasks.
type taskSender struct{ http *http.Client }

func newTaskSender(transport http.RoundTripper) *taskSender {
	return &taskSender{&http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (s *taskSender) close() { s.http.CloseIdleConnections() }

// send makes one attempt at a task.
func (s *taskSender) send(ctx context.Context, q *taskQueue, t *task) taskResult {
	deadline := defaultDeadline
	if d := t.pb.GetDispatchDeadline(); d != nil {
		deadline = d.AsDuration()
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	req, err := taskRequest(ctx, q, t)
	if err != nil {
		return taskResult{err: err}
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return taskResult{err: fmt.Errorf("send task: %w", err)}
	}
	answer, err := readAnswer(resp)
	result := taskResult{code: resp.StatusCode, retryAfter: retryAfter(resp.Header, time.Now())}
	switch {
	case result.code < 200 || result.code > 299:
		result.err = fmt.Errorf("worker %s answered %s: %s", req.URL.Redacted(), resp.Status, answer)
	case err != nil:
		result.err = fmt.Errorf("read answer of worker %s: %w", req.URL.Redacted(), err)
	}
	return result
}

// taskRequest is a task's HTTP request, with the headers that Cloud Tasks adds.
func taskRequest(ctx context.Context, q *taskQueue, t *task) (*http.Request, error) {
	want := t.pb.GetHttpRequest()
	req, err := http.NewRequestWithContext(ctx, method(want), want.GetUrl(), bytes.NewReader(want.GetBody()))
	if err != nil {
		return nil, fmt.Errorf("make request of task: %w", err)
	}
	for name, value := range want.GetHeaders() {
		if !reservedHeader(name) {
			req.Header.Set(name, value)
		}
	}
	set := func(name, value string) { req.Header.Set("X-CloudTasks-"+name, value) }
	set("QueueName", path.Base(q.pb.GetName()))
	set("TaskName", path.Base(t.pb.GetName()))
	set("TaskRetryCount", strconv.Itoa(int(t.pb.GetDispatchCount())-1))
	set("TaskExecutionCount", strconv.Itoa(t.executions))
	set("TaskETA", fmt.Sprintf("%d.%06d", t.due.Unix(), t.due.Nanosecond()/1000))
	if t.last.err != nil {
		set("TaskRetryReason", t.last.reason())
	}
	if t.last.code != 0 {
		set("TaskPreviousResponse", strconv.Itoa(t.last.code))
	}
	req.Header.Set("User-Agent", "Google-Cloud-Tasks")
	return req, nil
}

func method(r *cloudtaskspb.HttpRequest) string {
	if r.GetHttpMethod() == cloudtaskspb.HttpMethod_HTTP_METHOD_UNSPECIFIED {
		return http.MethodPost
	}
	return r.GetHttpMethod().String()
}

// reservedHeader reports whether Cloud Tasks ignores a task's value for a
// header.
func reservedHeader(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "host", "content-length", "user-agent":
		return true
	}
	for _, prefix := range []string{"x-google-", "x-appengine-", "x-cloudtasks-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// retryAfter reads the header of that name: seconds or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return at.Sub(now)
	}
	return 0
}
