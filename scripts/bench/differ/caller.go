package differ

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// answerTime is how long the engine may take for one answer. No route of the campaign takes a
	// second on an idle machine.
	answerTime = 40 * time.Second
	// busyTimeout is for how long a request is sent again, while the engine answers that it is busy or
	// that it builds what the answer needs.
	busyTimeout = 3 * time.Minute
)

// caller sends the requests of one app.
type caller struct {
	engine   *engine
	app, key string
	http     *http.Client
}

// request is a request that may be repeated.
type request struct {
	c            *caller
	method, path string
	body         []byte
	sent         int64 // ms, of the last attempt
}

// span is when an attempt of a request was under way (ms).
type span struct{ from, to int64 }

// answer is what came back, and when the attempts were under way.
type answer struct {
	*request
	status int
	body   []byte
	spans  []span // the last one was answered
}

// at is when the request that was answered was sent, done when the answer was there.
func (a *answer) at() int64   { return a.spans[len(a.spans)-1].from }
func (a *answer) done() int64 { return a.spans[len(a.spans)-1].to }

// decode reads the answer.
func (a *answer) decode(into any) error {
	if err := json.Unmarshal(a.body, into); err != nil {
		return a.differs("form of the answer", string(a.body), err.Error())
	}
	return nil
}

// differs makes a difference of the answer.
func (a *answer) differs(what, engine, model string) *Difference {
	return &Difference{What: what, Request: a.curl(), Engine: engine, Model: model}
}

// do sends a request until the engine answers it. Statuses besides 429 and 503, which ask to send
// it again, end the attempts.
func (c *caller) do(method, path string, body []byte) (*answer, error) {
	a := &answer{request: &request{c: c, method: method, path: path, body: body}}
	end := time.Now().Add(busyTimeout)
	for {
		if err := c.engine.ready(); err != nil {
			return nil, err
		}
		a.status, a.body = 0, nil
		from := time.Now()
		a.sent = from.UnixMilli()
		starts := c.begin(a.request)
		wait, err := c.attempt(a)
		ended := c.end(a.request, starts)
		a.spans = append(a.spans, span{a.sent, time.Now().UnixMilli()})
		switch {
		case c.engine.ctx.Err() != nil:
			return nil, context.Cause(c.engine.ctx)
		case err == nil && a.status != http.StatusTooManyRequests && a.status != http.StatusServiceUnavailable:
			return a, nil
		case err != nil && !ended && time.Since(from) >= answerTime:
			return nil, a.differs("no answer", fmt.Sprintf("none after %v", answerTime), "an answer")
		case time.Now().After(end):
			return nil, a.differs("no answer that counts",
				fmt.Sprintf("for %v: %d %s %v", busyTimeout, a.status, a.body, err), "an answer")
		}
		if !ended {
			time.Sleep(wait) // as long as the engine asks for
		}
	}
}

func (c *caller) begin(r *request) (starts int) {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	c.engine.pending[r] = true
	return c.engine.starts
}

// end reports whether the engine was ended since.
func (c *caller) end(r *request, starts int) bool {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	delete(c.engine.pending, r)
	return c.engine.ending || c.engine.starts != starts
}

func (c *caller) attempt(a *answer) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(c.engine.ctx, answerTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, a.method, "http://"+c.engine.addr+a.path, bytes.NewReader(a.request.body))
	if err != nil {
		return 0, err
	}
	for name, value := range c.headers() {
		r.Header.Set(name, value)
	}
	const pause = 20 * time.Millisecond
	response, err := c.http.Do(r)
	if err != nil {
		return pause, err
	}
	defer response.Body.Close()
	a.status = response.StatusCode
	if a.body, err = io.ReadAll(response.Body); err != nil {
		return pause, err
	}
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return time.Duration(min(max(seconds, 1), 10)) * time.Second, nil
}

// headers are those of the app, or of the operator for the caller without one.
func (c *caller) headers() map[string]string {
	if c.app == "" {
		return map[string]string{"Authorization": "Bearer " + operatorToken}
	}
	return map[string]string{"X-Algolia-Application-Id": c.app, "X-Algolia-API-Key": c.key}
}

// curl is a command that sends the request again. A long body is a file beside the data.
func (r *request) curl() string {
	quoted := func(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
	words := []string{"curl", "-s", "-X", r.method}
	for _, name := range []string{"Authorization", "X-Algolia-Application-Id", "X-Algolia-API-Key"} {
		if value, is := r.c.headers()[name]; is {
			words = append(words, "-H", quoted(name+": "+value))
		}
	}
	switch file := filepath.Join(r.c.engine.folder, "request.json"); {
	case len(r.body) > 2000 && os.WriteFile(file, r.body, 0o600) == nil:
		words = append(words, "--data-binary", "@"+file)
	case len(r.body) > 0:
		words = append(words, "--data-binary", quoted(string(r.body)))
	}
	return strings.Join(append(words, quoted("http://"+r.c.engine.addr+r.path)), " ")
}

// send sends a value as JSON and wants a status.
func (c *caller) send(method, path string, value any, want int) (*answer, error) {
	var body []byte
	if value != nil {
		var err error
		if body, err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	return c.want(method, path, body, want)
}

func (c *caller) want(method, path string, body []byte, want int) (*answer, error) {
	a, err := c.do(method, path, body)
	if err == nil && a.status != want {
		return a, a.differs("status", fmt.Sprintf("%d %s", a.status, a.body), strconv.Itoa(want))
	}
	return a, err
}

// newHTTP returns a client whose connections end with the engine.
func newHTTP() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, MaxIdleConnsPerHost: 8,
	}}
}

// Difference is an answer of the engine that is not that of the model.
type Difference struct {
	Seed    uint64
	Step    int
	App     string
	What    string
	Request string // the command that repeats it
	Engine  string
	Model   string
	Folder  string // log and data of the engine
	Start   string // the command that starts the engine again
}

// Error says what differs, and how to see it again.
func (d *Difference) Error() string {
	text := fmt.Sprintf("%s: the engine differs from the model (seed %d, app %s, step %d)\n  engine: %s\n  "+
		"model:  %s\n", d.What, d.Seed, d.App, d.Step, d.Engine, d.Model)
	if d.Request != "" {
		text += "  request: " + d.Request + "\n"
	}
	if d.Folder != "" {
		text += "  data and log: " + d.Folder + "\n  start: " + d.Start + "\n"
	}
	return text
}

// errDone ends what waits for the engine once the campaign has ended.
var errDone = errors.New("the campaign has ended")
