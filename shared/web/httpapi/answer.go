package httpapi

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
)

const (
	// AnswerTime is how long a client may take to receive AnswerStep bytes of an answer.
	// If it takes longer, its connection ends.
	AnswerTime = 30 * time.Second
	// AnswerStep is how many bytes of an answer are sent at a time.
	AnswerStep = 16 << 10

	// slowStep is how long a step takes to a client that reads slowly: the engine then
	// frees the memory of what it has sent.
	slowStep = time.Second
	// unsent is how many bytes of a handler that writes its answer itself wait until the
	// handler returns, so that an error can still replace them.
	unsent = 64 << 10
	// countedFrom is the size from which net/http does not count the bytes of an answer.
	countedFrom = 2 << 10
)

// answer is the ResponseWriter of a handler. The document that WriteJSON and its
// like encode stays here until the handler has returned. So the process then keeps
// nothing of the request but the document, however slowly the client reads.
//
// A handler that writes more than unsent bytes itself, or flushes, sends while it runs.
type answer struct {
	w      http.ResponseWriter
	blind  bool // w has no connection, as in a test
	header http.Header

	mu     sync.Mutex
	state  answerState
	status int    // 0: 200
	held   []byte // not sent yet
	memory int    // bytes that held keeps from the garbage collector
	pooled *bytes.Buffer
	wrote  time.Time // when the handler sent its last bytes
	done   bool      // the handler has returned
	cut    bool      // bytes are sent, and the rest of the answer does not follow

	watchdog *time.Timer
	answered chan struct{} // of a late handler: closed once its client has an answer
}

type answerState int

const (
	answerOpen  answerState = iota // nothing is sent
	answerBegun                    // the handler sends
	answerOver                     // the handler is too late: its writes fail
)

func newAnswer(w http.ResponseWriter) *answer { return &answer{w: w, header: http.Header{}} }

func (a *answer) Header() http.Header { return a.header }

// WriteHeader sets the status, which is sent with the first bytes.
func (a *answer) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state == answerOpen {
		a.status = status
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state == answerOpen && len(a.held)+len(b) <= unsent {
		a.held = append(a.held, b...)
		return len(b), nil
	}
	if err := a.begin(); err != nil {
		return 0, err
	}
	return a.sendNow(b)
}

// FlushError sends what Write has kept. http.ResponseController calls it.
func (a *answer) FlushError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.begin(); err != nil {
		return err
	}
	return http.NewResponseController(a.w).Flush()
}

// SetReadDeadline sets that of the connection. http.ResponseController calls it.
func (a *answer) SetReadDeadline(at time.Time) error {
	return http.NewResponseController(a.w).SetReadDeadline(at)
}

// begin sends the header and what is held, unless the handler has begun to send. The
// caller holds mu.
func (a *answer) begin() error {
	switch a.state {
	case answerOver:
		return http.ErrHandlerTimeout
	case answerOpen:
		a.state = answerBegun
		a.sendHeader()
		held := a.held
		a.held = nil
		_, err := a.sendNow(held)
		return err
	}
	return nil
}

func (a *answer) sendNow(b []byte) (sent int, err error) {
	for len(b) > sent && err == nil {
		var n int
		n, err = a.step(b[sent:])
		sent += n
	}
	a.wrote = time.Now()
	return sent, err
}

// step sends at most AnswerStep bytes, to a client that takes them within AnswerTime.
func (a *answer) step(b []byte) (int, error) {
	if !a.blind {
		a.blind = http.NewResponseController(a.w).SetWriteDeadline(time.Now().Add(AnswerTime)) != nil
	}
	return a.w.Write(b[:min(len(b), AnswerStep)])
}

func (a *answer) sendHeader() {
	maps.Copy(a.w.Header(), a.header)
	if a.status != 0 {
		a.w.WriteHeader(a.status)
	}
}

// keep makes a document the answer, instead of an earlier one. The memory of the
// document belongs to a buffer of the pool if pooled is not nil.
func (a *answer) keep(status int, document []byte, pooled *bytes.Buffer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch a.state {
	case answerOpen:
		a.status, a.held, a.pooled = status, document, pooled
	case answerBegun:
		a.cut = true
	}
}

// watch calls late if the handler has not returned after some time, and makes its writes fail
// from then on. A handler that sends has AnswerTime more after its last bytes.
func (a *answer) watch(wait time.Duration, late func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchdog = time.AfterFunc(wait, func() {
		if answered := a.end(); answered != nil {
			late()
			close(answered)
		}
	})
}

// end is the end of a handler's time. It returns nil if the handler has returned or gets more.
func (a *answer) end() chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.done:
		return nil
	case a.state == answerBegun && time.Since(a.wrote) < AnswerTime:
		a.watchdog.Reset(AnswerTime)
		return nil
	}
	a.cut, a.state = a.state == answerBegun, answerOver
	a.answered = make(chan struct{})
	return a.answered
}

// finish ends watch once the handler has returned. It reports whether the handler was late, and
// then returns once the function of watch has.
func (a *answer) finish() bool {
	a.mu.Lock()
	a.done = true
	answered := a.answered
	a.mu.Unlock()
	a.watchdog.Stop()
	if answered == nil {
		return false
	}
	<-answered
	return true
}

// send sends what is held of a handler that has returned. The request of ctx holds as
// many bytes of the gate as the process keeps for it.
func (a *answer) send(ctx context.Context) {
	if a.state == answerBegun {
		return
	}
	a.memory = cap(a.held)
	admission.Keep(ctx, int64(a.memory))
	if len(a.held) > countedFrom {
		a.header.Set("Content-Length", strconv.Itoa(len(a.held)))
	}
	a.sendHeader()
	for len(a.held) > 0 {
		began := time.Now()
		n, err := a.step(a.held)
		if err != nil {
			break // the client is gone, or takes nothing
		}
		a.held = a.held[n:]
		if time.Since(began) >= slowStep {
			a.shrink(ctx)
		}
	}
	if a.pooled != nil && a.pooled.Cap() <= maxPooledBody {
		bodies.Put(a.pooled)
	}
}

// abort ends the connection, so that the client sees that the answer is not whole: the
// server cannot send the end of it. A panic would not do, because the framework of Cloud
// Run functions recovers from it and ends the answer.
func (a *answer) abort() {
	_ = http.NewResponseController(a.w).SetWriteDeadline(time.Unix(1, 0))
}

// close ends the connection while the handler runs.
func (a *answer) close() {
	conn, _, err := http.NewResponseController(a.w).Hijack()
	if err != nil {
		a.abort()
		return
	}
	_ = conn.Close()
}

// shrink frees what has been sent once that is more than half of the memory.
func (a *answer) shrink(ctx context.Context) {
	if 2*len(a.held) >= a.memory {
		return
	}
	a.held, a.pooled = bytes.Clone(a.held), nil
	a.memory = len(a.held)
	admission.Keep(ctx, int64(a.memory))
}
