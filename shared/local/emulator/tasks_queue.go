package emulator

import (
	"cmp"
	"container/heap"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"golang.org/x/time/rate"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Cloud Tasks' defaults.
const (
	defaultRate       = 500 // dispatches per second
	defaultConcurrent = 1000
	defaultAttempts   = 100
	defaultMinBackoff = 100 * time.Millisecond
	defaultMaxBackoff = time.Hour
	defaultDoublings  = 16
)

// noTask is how long the loop of a queue without a due task waits, unless it is
// woken.
const noTask = time.Duration(math.MaxInt64)

// taskFate is the state of a task after an attempt.
type taskFate int

const (
	taskDone    taskFate = iota // delivered, or deleted during the attempt
	taskRetried                 // to be attempted again
	taskGivenUp                 // its retry settings allow no further attempt
)

// task is a live task. The service's lock guards it, except for the fields that
// a running attempt reads: nothing writes those during an attempt.
type task struct {
	pb       *cloudtaskspb.Task
	due      time.Time
	sequence uint64     // order of creation
	place    int        // in the heap of waiting tasks; -1 during an attempt
	ended    bool       // deleted, perhaps during an attempt
	last     taskResult // of the previous attempt
	// executions counts the attempts that a worker answered with any status but
	// 5xx. Cloud Tasks reports this count in a header, and the count of all
	// attempts in the API.
	executions int
}

func (t *task) retrying() bool { return t.pb.GetDispatchCount() > 0 }

// taskHeap sorts tasks by the time at which they are due.
type taskHeap []*task

func (h taskHeap) Len() int { return len(h) }
func (h taskHeap) Less(i, j int) bool {
	return cmp.Or(h[i].due.Compare(h[j].due), cmp.Compare(h[i].sequence, h[j].sequence)) < 0
}
func (h taskHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}
func (h *taskHeap) Push(x any) {
	t := x.(*task)
	t.place = len(*h)
	*h = append(*h, t)
}
func (h *taskHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	t.place = -1
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}

// taskQueue is a queue with its tasks. The service's lock guards it.
type taskQueue struct {
	pb       *cloudtaskspb.Queue // with all defaults filled in
	limiter  *rate.Limiter
	live     map[string]*task // every task by full name
	waiting  taskHeap         // the live tasks without a running attempt
	sending  int
	finished tombstones
	created  uint64
	wake     chan struct{}
}

func newTaskQueue(pb *cloudtaskspb.Queue) *taskQueue {
	limits := pb.RateLimits
	if limits == nil {
		limits = &cloudtaskspb.RateLimits{}
		pb.RateLimits = limits
	}
	limits.MaxDispatchesPerSecond = cmp.Or(limits.MaxDispatchesPerSecond, defaultRate)
	limits.MaxConcurrentDispatches = cmp.Or(limits.MaxConcurrentDispatches, defaultConcurrent)
	limits.MaxBurstSize = int32(math.Ceil(limits.MaxDispatchesPerSecond))
	pb.RetryConfig = withRetryDefaults(pb.RetryConfig, &cloudtaskspb.RetryConfig{
		MaxAttempts:      defaultAttempts,
		MinBackoff:       durationpb.New(defaultMinBackoff),
		MaxBackoff:       durationpb.New(defaultMaxBackoff),
		MaxDoublings:     defaultDoublings,
		MaxRetryDuration: durationpb.New(0),
	})
	pb.State = cloudtaskspb.Queue_RUNNING
	return &taskQueue{
		pb:      pb,
		limiter: rate.NewLimiter(rate.Limit(limits.MaxDispatchesPerSecond), int(limits.MaxBurstSize)),
		live:    map[string]*task{},
		wake:    make(chan struct{}, 1),
	}
}

// withRetryDefaults fills the fields that a retry configuration does not set.
func withRetryDefaults(c, defaults *cloudtaskspb.RetryConfig) *cloudtaskspb.RetryConfig {
	return &cloudtaskspb.RetryConfig{
		MaxAttempts:      cmp.Or(c.GetMaxAttempts(), defaults.GetMaxAttempts()),
		MaxRetryDuration: cmp.Or(c.GetMaxRetryDuration(), defaults.GetMaxRetryDuration()),
		MinBackoff:       cmp.Or(c.GetMinBackoff(), defaults.GetMinBackoff()),
		MaxBackoff:       cmp.Or(c.GetMaxBackoff(), defaults.GetMaxBackoff()),
		MaxDoublings:     cmp.Or(c.GetMaxDoublings(), defaults.GetMaxDoublings()),
	}
}

// poke wakes the queue's loop.
func (q *taskQueue) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// add adds a task.
func (q *taskQueue) add(pb *cloudtaskspb.Task) {
	q.created++
	t := &task{pb: pb, due: pb.GetScheduleTime().AsTime(), sequence: q.created}
	q.live[pb.GetName()] = t
	heap.Push(&q.waiting, t)
	q.poke()
}

// next takes the task to send now, or returns how long to wait for one.
func (q *taskQueue) next(now time.Time) (*task, time.Duration) {
	if len(q.waiting) == 0 || q.sending >= int(q.pb.GetRateLimits().GetMaxConcurrentDispatches()) {
		return nil, noTask
	}
	if wait := q.waiting[0].due.Sub(now); wait > 0 {
		return nil, wait
	}
	reservation := q.limiter.ReserveN(now, 1)
	if wait := reservation.DelayFrom(now); wait > 0 {
		reservation.CancelAt(now)
		return nil, wait
	}
	t := heap.Pop(&q.waiting).(*task)
	q.sending++
	t.pb.DispatchCount++
	t.pb.LastAttempt = &cloudtaskspb.Attempt{ScheduleTime: timestamppb.New(t.due), DispatchTime: timestamppb.New(now)}
	if t.pb.FirstAttempt == nil {
		t.pb.FirstAttempt = &cloudtaskspb.Attempt{DispatchTime: timestamppb.New(now)}
	}
	return t, 0
}

// settle records an attempt and puts the task back or removes it.
func (q *taskQueue) settle(t *task, result taskResult, now time.Time) taskFate {
	q.sending--
	if t.ended {
		return taskDone
	}
	t.pb.LastAttempt.ResponseStatus = result.status()
	if result.code != 0 {
		t.pb.ResponseCount++
		if result.code < http.StatusInternalServerError {
			t.executions++
		}
		t.pb.LastAttempt.ResponseTime = timestamppb.New(now)
	}
	retry := withRetryDefaults(t.pb.GetRetryConfig(), q.pb.GetRetryConfig())
	switch {
	case result.err == nil:
		q.remove(t, now)
		return taskDone
	case exhausted(t.pb, retry, now):
		q.remove(t, now)
		return taskGivenUp
	}
	t.last = result
	t.due = now.Add(max(retryInterval(retry, int(t.pb.GetDispatchCount())), result.retryAfter))
	t.pb.ScheduleTime = timestamppb.New(t.due)
	heap.Push(&q.waiting, t)
	return taskRetried
}

// remove ends a task and remembers its name.
func (q *taskQueue) remove(t *task, now time.Time) {
	t.ended = true
	if t.place >= 0 {
		heap.Remove(&q.waiting, t.place)
	}
	delete(q.live, t.pb.GetName())
	q.finished.add(t.pb.GetName(), now)
}

// busy reports whether a task is due, under way or waiting for a retry.
func (q *taskQueue) busy(now time.Time) bool {
	if q.sending > 0 {
		return true
	}
	for _, t := range q.live {
		if t.retrying() || !t.due.After(now) {
			return true
		}
	}
	return false
}

// exhausted reports whether a task has used up its attempts and its time. If
// only one of the two is limited, that one decides.
func exhausted(t *cloudtaskspb.Task, c *cloudtaskspb.RetryConfig, now time.Time) bool {
	attempts, duration := c.GetMaxAttempts(), c.GetMaxRetryDuration().AsDuration()
	if attempts < 0 && duration <= 0 {
		return false
	}
	spentAttempts := attempts < 0 || t.GetDispatchCount() >= attempts
	spentTime := duration <= 0 || now.Sub(t.GetFirstAttempt().GetDispatchTime().AsTime()) >= duration
	return spentAttempts && spentTime
}

// retryInterval is the wait after a number of attempts: the minimum, doubled
// max_doublings times, then increased by the same step each time, up to the
// maximum.
func retryInterval(c *cloudtaskspb.RetryConfig, attempts int) time.Duration {
	minBackoff, maxBackoff := c.GetMinBackoff().AsDuration(), c.GetMaxBackoff().AsDuration()
	doublings := min(attempts-1, int(c.GetMaxDoublings()))
	steps := attempts - doublings
	interval := float64(minBackoff) * math.Pow(2, float64(doublings)) * float64(steps)
	return time.Duration(min(interval, float64(maxBackoff)))
}

const (
	// tombstoneAge is how long the name of a finished task stays reserved.
	// Cloud Tasks documents up to 24 hours. In practice it is about one hour.
	tombstoneAge = time.Hour
	// maxTombstones bounds the names kept for one queue: about 10 MB.
	maxTombstones = 100_000
)

// tombstones are the names of recently ended tasks.
type tombstones struct {
	ended map[string]time.Time
	names []string // in the order in which the tasks ended
	// gone are names that are not reserved any more, and that expired has not returned.
	gone []string
}

func (ts *tombstones) add(name string, now time.Time) {
	if ts.ended == nil {
		ts.ended = map[string]time.Time{}
	}
	ts.ended[name] = now
	ts.names = append(ts.names, name)
	for len(ts.names) > maxTombstones || !ts.has(ts.names[0], now) {
		ts.gone = append(ts.gone, ts.names[0])
		delete(ts.ended, ts.names[0])
		ts.names = ts.names[1:]
	}
}

// restore begins with the names of tasks that ended in an earlier process.
func (ts *tombstones) restore(ended map[string]time.Time) {
	ts.ended = ended
	ts.names = slices.SortedFunc(maps.Keys(ended), func(a, b string) int { return ended[a].Compare(ended[b]) })
}

// expired returns the names that are not reserved any more, each once.
func (ts *tombstones) expired() []string {
	gone := ts.gone
	ts.gone = nil
	return gone
}

func (ts *tombstones) has(name string, now time.Time) bool {
	ended, ok := ts.ended[name]
	return ok && now.Sub(ended) < tombstoneAge
}
