package emulator

import (
	"net/url"
	"regexp"
	"strings"
	"time"

	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Cloud Tasks' limits, from the documentation of its API and quotas.
const (
	maxTaskBytes   = 100 << 10
	maxHeaderBytes = 80 << 10
	maxURL         = 2083
	maxHorizon     = 30 * 24 * time.Hour
	minDeadline    = 15 * time.Second
	maxDeadline    = 30 * time.Minute
	maxRate        = 500
	maxConcurrent  = 5000
)

var (
	queueName = regexp.MustCompile(`^projects/[A-Za-z0-9:.-]+/locations/[A-Za-z0-9-]+/queues/[A-Za-z0-9-]{1,100}$`)
	taskID    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,500}$`)
)

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func validateQueue(q *cloudtaskspb.Queue) error {
	limits := q.GetRateLimits()
	switch {
	case !queueName.MatchString(q.GetName()):
		return invalid("queue name %q is not projects/P/locations/L/queues/Q", q.GetName())
	case q.GetHttpTarget() != nil || q.GetAppEngineRoutingOverride() != nil:
		return status.Errorf(codes.Unimplemented, "queue %s: the emulator has no targets for a whole queue", q.GetName())
	case limits.GetMaxDispatchesPerSecond() < 0 || limits.GetMaxDispatchesPerSecond() > maxRate:
		return invalid("queue %s: max_dispatches_per_second must be at most %d", q.GetName(), maxRate)
	case limits.GetMaxConcurrentDispatches() < 0 || limits.GetMaxConcurrentDispatches() > maxConcurrent:
		return invalid("queue %s: max_concurrent_dispatches must be at most %d", q.GetName(), maxConcurrent)
	}
	return validateRetry(q.GetRetryConfig())
}

func validateRetry(c *cloudtaskspb.RetryConfig) error {
	minBackoff, maxBackoff := c.GetMinBackoff().AsDuration(), c.GetMaxBackoff().AsDuration()
	switch {
	case c.GetMaxAttempts() < -1:
		return invalid("max_attempts must be -1 or more")
	case c.GetMaxDoublings() < 0 || c.GetMaxRetryDuration().AsDuration() < 0 || minBackoff < 0 || maxBackoff < 0:
		return invalid("a retry setting is negative")
	case c.GetMinBackoff() != nil && c.GetMaxBackoff() != nil && minBackoff > maxBackoff:
		return invalid("min_backoff %v is above max_backoff %v", minBackoff, maxBackoff)
	}
	return nil
}

func validateTask(queue string, t *cloudtaskspb.Task, now time.Time) error {
	if t.GetAppEngineHttpRequest() != nil {
		return status.Error(codes.Unimplemented, "the emulator has no App Engine tasks")
	}
	if t.GetName() != "" {
		id, ok := strings.CutPrefix(t.GetName(), queue+"/tasks/")
		if !ok || !taskID.MatchString(id) {
			return invalid("task name %q is not %s/tasks/ and 1 to 500 of A-Z a-z 0-9 _ -", t.GetName(), queue)
		}
	}
	if size := proto.Size(t); size > maxTaskBytes {
		return invalid("the task has %d bytes, at most %d are allowed", size, maxTaskBytes)
	}
	if t.GetScheduleTime().AsTime().Sub(now) > maxHorizon {
		return invalid("schedule_time %v is more than %v ahead", t.GetScheduleTime().AsTime(), maxHorizon)
	}
	if d := t.GetDispatchDeadline(); d != nil && (d.AsDuration() < minDeadline || d.AsDuration() > maxDeadline) {
		return invalid("dispatch_deadline %v is not within %v and %v", d.AsDuration(), minDeadline, maxDeadline)
	}
	if err := validateRetry(t.GetRetryConfig()); err != nil {
		return err
	}
	return validateRequest(t.GetHttpRequest())
}

func validateRequest(r *cloudtaskspb.HttpRequest) error {
	u, err := url.Parse(r.GetUrl())
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return invalid("url %q is not an http or https URL", r.GetUrl())
	}
	if len(u.String()) > maxURL {
		return invalid("the url has %d characters, at most %d are allowed", len(u.String()), maxURL)
	}
	headers := 0
	for name, value := range r.GetHeaders() {
		headers += len(name) + len(value)
	}
	if headers >= maxHeaderBytes {
		return invalid("the headers have %d bytes, fewer than %d are allowed", headers, maxHeaderBytes)
	}
	switch r.GetHttpMethod() {
	case cloudtaskspb.HttpMethod_HTTP_METHOD_UNSPECIFIED, cloudtaskspb.HttpMethod_POST, cloudtaskspb.HttpMethod_PUT,
		cloudtaskspb.HttpMethod_PATCH:
	default:
		if len(r.GetBody()) > 0 {
			return invalid("a %s request can have no body", r.GetHttpMethod())
		}
	}
	return nil
}
