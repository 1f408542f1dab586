package measure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/affinityengine/affinity/shared/api"
)

// differing is how many requests of a kind differ. Each is sent once before the
// measurement: it fills the memory, and its answer is checked.
const differing = 50

// asked is a kind of request.
type asked struct {
	stopwatch
	send   sender
	bodies [][]byte // sent in turn
	items  int      // of an answer
}

// sender sends a request, and returns when it has the whole answer.
type sender func(body []byte) (status int, answer []byte, err error)

// kinds returns the kinds of warm requests, in the order of the report. end closes
// the connection of HTTP.
func (r *rankRun) kinds(h http.Handler) (kinds []*asked, end func(), err error) {
	server := httptest.NewServer(h)
	for _, k := range []struct {
		send    sender
		request func(i, candidates int) api.RankRequest
	}{
		{direct(h), r.shop.request}, {direct(h), r.shop.withRelevancies}, {direct(h), r.shop.explained},
		{direct(h), r.shop.fresh},
		{overHTTP(server), r.shop.request},
	} {
		kind, err := r.kind(k.send, func(i int) api.RankRequest { return k.request(i, r.Candidates) }, differing)
		for i := 0; err == nil && i < differing; i++ {
			err = kind.check(i)
		}
		if err != nil {
			server.Close()
			return nil, nil, err
		}
		kinds = append(kinds, kind)
	}
	return kinds, server.Close, nil
}

// kind encodes n requests before the measurement: their encoding is no work of the
// engine.
func (r *rankRun) kind(send sender, request func(i int) api.RankRequest, n int) (*asked, error) {
	k := &asked{stopwatch: newStopwatch(), send: send}
	for i := range n {
		q := request(i)
		if k.items = q.Limit; k.items == 0 || k.items > r.Candidates {
			k.items = r.Candidates
		}
		body, err := json.Marshal(q)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		k.bodies = append(k.bodies, body)
	}
	return k, nil
}

// ask measures a request.
func (k *asked) ask(i int) error {
	var status int
	var answer []byte
	err := k.time(func() (err error) { status, answer, err = k.send(k.bodies[i%len(k.bodies)]); return err })
	if err == nil && (status != http.StatusOK || bytes.Count(answer, []byte(`"objectID"`)) != k.items) {
		err = fmt.Errorf("the function answered %d %.200s", status, answer)
	}
	return err
}

// check sends a request, and reads its answer.
func (k *asked) check(i int) error {
	status, body, err := k.send(k.bodies[i])
	if err != nil {
		return err
	}
	var answer api.RankAnswer
	err = json.Unmarshal(body, &answer)
	switch {
	case err != nil || status != http.StatusOK:
		return fmt.Errorf("the function answered %d %.200s", status, body)
	case len(answer.Items) != k.items || answer.Fallback != nil || answer.CrowdAsOf == nil:
		return fmt.Errorf("the answer has %d items, fallback %v, statistics as of %v", len(answer.Items),
			answer.Fallback, answer.CrowdAsOf)
	}
	return nil
}

// direct calls a handler.
func direct(h http.Handler) sender {
	return func(body []byte) (int, []byte, error) {
		in := httptest.NewRequest(http.MethodPost, "/1/rank", bytes.NewReader(body))
		authenticate(in)
		out := httptest.NewRecorder()
		h.ServeHTTP(out, in)
		return out.Code, out.Body.Bytes(), nil
	}
}

// overHTTP sends requests to a server, one after the other on one connection.
func overHTTP(s *httptest.Server) sender {
	return func(body []byte) (int, []byte, error) {
		in, err := http.NewRequest(http.MethodPost, s.URL+"/1/rank", bytes.NewReader(body))
		if err != nil {
			return 0, nil, fmt.Errorf("make the request: %w", err)
		}
		authenticate(in)
		out, err := s.Client().Do(in)
		if err != nil {
			return 0, nil, fmt.Errorf("send the request: %w", err)
		}
		defer out.Body.Close()
		answer, err := io.ReadAll(out.Body)
		return out.StatusCode, answer, err
	}
}

func authenticate(r *http.Request) {
	r.Header.Set("X-Algolia-Application-Id", appID)
	r.Header.Set("X-Algolia-API-Key", rankKey)
}
