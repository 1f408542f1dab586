package stack_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/functions/worker"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/deadline"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// watch records every request to Bigtable: its method, its table and its app
// profile, and whether it ends.
type watch struct {
	mu   sync.Mutex
	seen map[string]bool
	// endless are the requests that do not end with the work that they belong to.
	endless []string
}

func (w *watch) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			w.note(ctx, info.FullMethod, req)
			return handle(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			return handle(srv, &watched{stream, w, info.FullMethod})
		}),
	}
}

type watched struct {
	grpc.ServerStream
	w      *watch
	method string
}

func (s *watched) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		s.w.note(s.Context(), s.method, m)
	}
	return err
}

func (w *watch) note(ctx context.Context, method string, req any) {
	r, ok := req.(interface {
		GetAppProfileId() string
		GetTableName() string
	})
	if !ok || !strings.HasPrefix(method, "/google.bigtable.v2.") {
		return // administration, and requests of the client itself
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if end, ok := ctx.Deadline(); !ok || time.Until(end) > deadline.Longest {
		w.endless = append(w.endless, method)
	}
	table := r.GetTableName()
	w.seen[fmt.Sprint(r.GetAppProfileId(), ": ", method[strings.LastIndexByte(method, '/')+1:], " ", table[strings.LastIndexByte(table, '/')+1:])] = true
}

// take returns the requests since the last call, by app profile.
func (w *watch) take(profile string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var of []string
	for line := range w.seen {
		if rest, ok := strings.CutPrefix(line, profile+": "); ok {
			of = append(of, rest)
			delete(w.seen, line)
		}
	}
	slices.Sort(of)
	return of
}

// Reads of stored profiles use one app profile. Code that computes or writes uses
// the other. Each request ends with the request or task that made it.
func TestEveryRequestNamesItsAppProfile(t *testing.T) {
	w := &watch{seen: map[string]bool{}}
	s := start(t, stack.Options{AppProfile: "processing", ServingAppProfile: "serving", Bigtable: w.options(), ConfigTTL: time.Millisecond, RetentionDays: 90})
	ask := func(method, path, body string) func() {
		return func() {
			t.Helper()
			if code, answer := call(t, s, method, path, body); code/100 != 2 {
				t.Errorf("%s %s: %d %s", method, path, code, answer)
			}
			idle(t, s)
			idle(t, s) // tasks send messages, too
		}
	}
	order := func(path, body string) func() {
		return func() {
			t.Helper()
			answer := httptest.NewRecorder()
			worker.New(s.Backends.ForWorker()).ServeHTTP(answer, httptest.NewRequest("POST", path, strings.NewReader(body)))
			if answer.Code != http.StatusOK {
				t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
			}
			idle(t, s)
		}
	}
	move := func(step, body string) func() {
		return func() {
			t.Helper()
			ask("POST", "/1/schema/"+step, body)()
			settledSchema(t, s)
		}
	}
	ask("POST", "/1/strategies/personalization", seenStrategy)()
	event := func(user string) string {
		return `{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"` + user + `","objectIDs":["1"]}]}`
	}
	consistency := func(c config.Consistency, then func()) func() {
		return func() {
			t.Helper()
			if err := s.Backends.Config.SetConsistency(t.Context(), "demo", c); err != nil {
				t.Fatal(err)
			}
			<-time.After(2 * time.Millisecond) // what a function has cached is older than ConfigTTL now
			then()
		}
	}
	const row = "ReadRows users"
	for _, path := range []struct {
		name    string
		do      func()
		serving []string // all others are on processing
		least   string   // that must be seen there
	}{
		{"ingest and process", ask("POST", "/1/events", event("u")), nil, "MutateRow events"},
		{"refused", ask("GET", "/1/events/refused", ""), nil, "ReadRows refused"},
		{"seen", ask("GET", "/1/events/seen", ""), nil, "ReadRows usage"},
		{"recent events", ask("GET", "/1/events/recent", ""), nil, "ReadRows recent"},
		{"recent users", ask("GET", "/1/usertokens/recent", ""), nil, "ReadRows recent"},
		{"stored read", ask("GET", "/1/profiles/u", ""), []string{row}, ""},
		{"stored reads of many", ask("POST", "/1/profiles/batch", `{"userTokens":["u"]}`), []string{row}, ""},
		{"Algolia's form", ask("GET", "/1/profiles/personalization/u", ""), []string{row}, ""},
		{"strong read", ask("GET", "/1/profiles/u?consistency=strong", ""), nil, row},
		{"strong reads of many", ask("POST", "/1/profiles/batch", `{"userTokens":["u"],"consistency":"strong"}`), nil, row},
		{"strong, in Algolia's form", ask("GET", "/1/profiles/personalization/u?consistency=strong", ""), nil, row},
		{"strong by default", consistency(config.Strong, ask("GET", "/1/profiles/u", "")), nil, row},
		{"eventual, although strong is the default", ask("GET", "/1/profiles/u?consistency=eventual", ""), []string{row}, ""},
		{"eventual by default again", consistency(config.Eventual, ask("GET", "/1/profiles/u", "")), []string{row}, ""},
		{"import", ask("POST", "/1/events/import", `{"eventType":"view","eventName":"Seen","index":"i","userToken":"v","objectIDs":["1"]}`), nil, "MutateRow events"},
		{"computing read", ask("GET", "/1/profiles/v", ""), []string{row}, "MutateRow users"},
		{"explain", ask("GET", "/1/explain/u", ""), nil, "ReadRows events"},
		{"preview", ask("POST", "/1/strategies/personalization/preview", `{"strategy":`+seenStrategy+`}`), nil, "ReadRows events"},
		{"audit", ask("POST", "/1/audits", ""), nil, "ReadRows events"},
		{"catalog", ask("POST", "/1/indexes/i/batch", `{"requests":[{"action":"addObject","body":{"objectID":"1","color":"Red"}}]}`), nil, "MutateRow objects"},
		{"reenrich", ask("POST", "/1/reenrich", ""), nil, "MutateRow events"},
		{"recompute", ask("POST", "/1/recomputes", ""), nil, "ReadRows users"},
		{"night", order("/nightly", `{"spread":"0s"}`), nil, "ReadRows users"},
		{"start of a move", move("start", `{"to":"narrow"}`), nil, "ReadRows events_narrow"},
		{"backfill", move("backfill", ""), nil, "MutateRow events_narrow"},
		{"verify", move("verify", ""), nil, "ReadRows events_narrow"},
		{"cutover", move("cutover", ""), nil, ""},
		{"drop", move("drop", `{"schema":"wide"}`), nil, "ReadRows events"},
		{"opt-out", ask("PUT", "/1/optouts/w", ""), nil, "CheckAndMutateRow users"},
		{"state of an opt-out", ask("GET", "/1/optouts/w", ""), nil, row},
		{"list of users", ask("GET", "/1/usertokens", ""), []string{row}, "ReadRows users"},
		{"deletion and purge", ask("DELETE", "/1/usertokens/u", ""), nil, "CheckAndMutateRow users"},
	} {
		t.Run(path.name, func(t *testing.T) {
			w.take("serving")
			w.take("processing")
			path.do()
			if got := w.take("serving"); !slices.Equal(got, path.serving) {
				t.Errorf("on serving %q, want %q", got, path.serving)
			}
			all := w.take("processing")
			if path.least != "" && !slices.ContainsFunc(all, func(line string) bool { return sameWork(line, path.least) }) {
				t.Errorf("on processing %q, want %s among them", all, path.least)
			}
			if path.serving != nil && path.least == "" && len(all) > 0 {
				t.Errorf("a stored read uses the writers' cluster: %q", all)
			}
			if other := w.take(""); len(other) > 0 {
				t.Errorf("requests of another app profile, or of none: %q", other)
			}
		})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.endless) > 0 {
		t.Errorf("%d requests end after their work, or never: %q", len(w.endless), w.endless[:min(len(w.endless), 5)])
	}
}

// sameWork reports whether a request is the wanted one, or does the same to many
// rows.
func sameWork(line, want string) bool {
	return line == want || strings.Replace(line, "MutateRows", "MutateRow", 1) == want
}
