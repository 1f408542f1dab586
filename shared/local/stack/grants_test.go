package stack_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/affinityengine/affinity/functions/worker"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/warehouse/outbox"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/terraform"
)

// access is what a function does with a table, a database, topics or the queues.
type access struct {
	function, what string
	writes         bool
}

func (u access) String() string {
	if u.writes {
		return u.function + " writes " + u.what
	}
	return u.function + " reads " + u.what
}

// caller is the metadata of a request that names the function which makes it. A context has it
// from the function's own request to the last call of a service.
const caller = "x-caller"

func callerOf(md metadata.MD, _ bool) string {
	if names := md.Get(caller); len(names) > 0 {
		return names[len(names)-1] // the console calls others
	}
	return ""
}

// uses are those that were seen.
type uses struct {
	mu     sync.Mutex
	seen   map[access]bool
	active map[string]int  // requests that run, by function
	mayTo  map[access]bool // the grants
}

func (u *uses) saw(function, what string, writes bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.seen[access{function, what, writes}] = true
}

func (u *uses) hasSeen(a access) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.seen[a]
}

// function is that of stack.Watch.
func (u *uses) function(name string, h http.Handler) http.Handler {
	running := func(n int) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.active[name] += n
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running(1)
		defer running(-1)
		h.ServeHTTP(w, r.WithContext(metadata.AppendToOutgoingContext(r.Context(), caller, name)))
	})
}

// call records a request of a service.
func (u *uses) call(ctx context.Context, method string, request any) {
	from := callerOf(metadata.FromIncomingContext(ctx))
	switch r := request.(type) {
	case interface{ GetTableName() string }:
		reads := slices.Contains([]string{"ReadRows", "SampleRowKeys"}, path.Base(method))
		u.saw(from, "table "+path.Base(r.GetTableName()), !reads)
	case interface{ GetTopic() string }:
		if path.Base(method) == "Publish" && topicOf(path.Base(r.GetTopic())) != topicOf("warehouse") {
			u.publish(path.Base(r.GetTopic()))
		}
	case interface{ GetParent() string }:
		if path.Base(method) == "CreateTask" {
			u.saw(from, "queues", true)
		}
	}
}

// publish records a publish. The client makes it behind the request that waits for it, so any
// of those that run may be the one: it counts if there is only one, or only one that may.
func (u *uses) publish(topic string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	running := map[string]bool{}
	for name, n := range u.active {
		if n > 0 && u.mayTo[access{name, topicOf(topic), true}] {
			running[name] = true
		}
	}
	if len(running) == 0 {
		for name, n := range u.active {
			running[name] = n > 0
		}
	}
	for name, is := range running {
		if is && len(running) == 1 {
			u.seen[access{name, topicOf(topic), true}] = true
		}
	}
}

func topicOf(topic string) string {
	switch {
	case strings.HasPrefix(topic, "warehouse"):
		return "topics of rows"
	case strings.HasPrefix(topic, "events-dead-letter"):
		return "topic of dead letters"
	}
	return "topics of events"
}

type watchedStream struct {
	grpc.ServerStream
	saw func(any)
}

func (s watchedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		s.saw(m)
	}
	return err
}

func (u *uses) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, r any, info *grpc.UnaryServerInfo, do grpc.UnaryHandler) (any, error) {
			u.call(ctx, info.FullMethod, r)
			return do(ctx, r)
		}),
		grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, do grpc.StreamHandler) error {
			return do(srv, watchedStream{s, func(m any) { u.call(s.Context(), info.FullMethod, m) }})
		}),
	}
}

// watchedDocuments record calls of a database.
type watchedDocuments struct {
	documents.Store
	*uses
	name string
}

func (d watchedDocuments) record(ctx context.Context, writes bool) {
	d.saw(callerOf(metadata.FromOutgoingContext(ctx)), "database "+d.name, writes)
}

func (d watchedDocuments) Get(ctx context.Context, path string) (documents.Document, error) {
	d.record(ctx, false)
	return d.Store.Get(ctx, path)
}

func (d watchedDocuments) Find(ctx context.Context, q documents.Query) ([]documents.Document, error) {
	d.record(ctx, false)
	return d.Store.Find(ctx, q)
}

func (d watchedDocuments) Count(ctx context.Context, q documents.Query) (int, error) {
	d.record(ctx, false)
	return d.Store.Count(ctx, q)
}

func (d watchedDocuments) Sum(ctx context.Context, q documents.Query, field string) (int64, error) {
	d.record(ctx, false)
	return d.Store.Sum(ctx, q, field)
}

func (d watchedDocuments) Below(ctx context.Context, path string) ([]string, error) {
	d.record(ctx, false)
	return d.Store.Below(ctx, path)
}

func (d watchedDocuments) Commit(ctx context.Context, writes ...documents.Write) error {
	d.record(ctx, true)
	return d.Store.Commit(ctx, writes...)
}

func (d watchedDocuments) Forget(ctx context.Context, collections ...string) error {
	d.record(ctx, true)
	return d.Store.Forget(ctx, collections...)
}

// watchedTopics record publishes of rows, which the client makes behind the requests of others, too.
type watchedTopics struct {
	outbox.Topics
	*uses
}

func (w watchedTopics) record(ctx context.Context) {
	w.saw(callerOf(metadata.FromOutgoingContext(ctx)), topicOf("warehouse"), true)
}

func (w watchedTopics) PublishEvents(ctx context.Context, app, region string, rows [][]byte) error {
	w.record(ctx)
	return w.Topics.PublishEvents(ctx, app, region, rows)
}

func (w watchedTopics) PublishDeletion(ctx context.Context, app, region string, row []byte) error {
	w.record(ctx)
	return w.Topics.PublishDeletion(ctx, app, region, row)
}

func (w watchedTopics) PublishEverywhere(ctx context.Context, row []byte) error {
	w.record(ctx)
	return w.Topics.PublishEverywhere(ctx, row)
}

// grantsOf returns what Terraform lets a function do.
func grantsOf(t *testing.T, f terraform.Function) map[access]bool {
	t.Helper()
	tables, err := store.Tables()
	must.Succeed(t, err)
	granted := map[access]bool{}
	add := func(what string, writes bool) { granted[access{f.Name, what, writes}] = true }
	for _, table := range f.Access.Reads {
		add("table "+table, false)
	}
	for _, table := range f.Access.Writes {
		if table != "*" {
			add("table "+table, true)
			continue
		}
		for _, table := range tables {
			add("table "+table.Name, true)
		}
	}
	for database, role := range map[string]string{terraform.Database: f.Access.Configuration, terraform.KeysDatabase: f.Access.Keys} {
		if role != "none" {
			add("database "+database, role == "user")
		}
	}
	for what, may := range map[string]bool{
		"topics of events": f.Access.Publishes, "topic of dead letters": f.Access.Buries,
		"topics of rows": slices.Contains(f.Env, "PUBSUB_WAREHOUSE_TOPIC"), "queues": slices.Contains(f.Env, "TASKS_QUEUE"),
	} {
		if may {
			add(what, true)
		}
	}
	return granted
}

// behind are tables that a process writes behind its requests, when enough has come together.
// Nobody can say then for which request it was: each function that may write one counts.
var behind = []string{"table usage", "table rates", "table refused", "table recent"}

// rare are grants that this test need not use, by why.
var rare = rarely(map[string][]access{
	"a block of a history names a dictionary only where an app has enough blocks to make one of": {
		{"admin", "table dictionaries", false}, {"profiles", "table dictionaries", false}, {"rank", "table dictionaries", false},
		{"segments", "table dictionaries", false}, {"strategies", "table dictionaries", false}, {"process", "table dictionaries", false}},
	"a job has details from the start, or when it is cancelled, only if it speaks of a user": {
		{"admin", "table jobs", true}, {"rank", "table jobs", true}, {"segments", "table jobs", true}, {"strategies", "table jobs", true}},
	"another function of this process has listed the user already": {{"admin", "table changes", true}},
	"another function of this process remembers where users live":  {{"segments", "table locations", false}},
	"only events of a dump or an archive can be calls":             {{"imports", "table calls", true}},
	"process looks objects up only where ingest could not":         {{"process", "table objects", false}},
	"process sends a message back only when processes die":         {{"process", "topics of events", true}},
})

func rarely(why map[string][]access) map[access]string {
	reasons := map[access]string{}
	for reason, all := range why {
		for _, a := range all {
			reasons[a] = reason
		}
	}
	return reasons
}

// TestGrants compares what functions call on all routes, tasks and messages with what Terraform
// grants them: nothing is missing, and nothing is too much. What the console may do is compared
// by Terraform's own tests.
func TestGrants(t *testing.T) {
	deployment, err := terraform.ReadDeployment()
	must.Succeed(t, err)
	granted := map[access]bool{}
	for _, f := range deployment.Functions {
		if f.Name != "console" {
			maps.Copy(granted, grantsOf(t, f))
		}
	}
	u := &uses{seen: map[access]bool{}, active: map[string]int{}, mayTo: granted}
	s := start(t, stack.Options{
		Bigtable: u.options(), ConfigTTL: time.Millisecond, LateWrites: time.Millisecond, Warehouse: t.TempDir(),
		Regions: []string{"eu", "us"},
		Watch: stack.Watch{Function: u.function, Services: u.options(),
			Topics:    func(t outbox.Topics) outbox.Topics { return watchedTopics{t, u} },
			Documents: func(name string, s documents.Store) documents.Store { return watchedDocuments{s, u, name} }},
		Recompute: job.Settings{ShardUsers: 2, Budget: time.Minute, Attempts: 3, Concurrency: 2},
	})
	must.Succeed(t, s.Backends.Config.SetLimits(t.Context(), "demo", limit.Numbers{WriteWindowMs: 1}))
	createThin(t, s)
	apps := []string{"thin", "demo"}
	for _, app := range apps {
		must.Succeed(t, s.Backends.Config.SetSegments(t.Context(), app, true))
		useEverything(t, s, app)
	}
	garbage := bus.Message{App: "demo", ReceivedAt: time.Now().UnixMilli(), Request: 9, Resolved: true, Body: []byte("{")}
	must.Succeed(t, s.Backends.Bus.Publish(t.Context(), garbage))
	idle(t, s)
	night := u.function("worker", worker.New(s.Backends.ForWorker()))
	w := httptest.NewRecorder()
	if night.ServeHTTP(w, httptest.NewRequest("POST", "/nightly", strings.NewReader(`{"spread":"0s"}`))); w.Code != http.StatusOK {
		t.Errorf("the nightly round: %d %s", w.Code, w.Body)
	}
	idle(t, s)
	must.Succeed(t, errors.Join(s.Backends.Usage.Flush(t.Context()), s.Backends.Refused.Flush(t.Context())))
	// No user of this test has enough blocks for a dictionary.
	m := bigtable.NewMutation()
	m.Set("d", "later", 0, nil)
	must.Succeed(t, bigtableOf(t, s).Open("dictionaries").Apply(t.Context(), "demo,", m))
	for _, app := range apps {
		_, err := s.Backends.Deletions.Delete(t.Context(), app, false)
		must.Succeed(t, err)
		deleted(t, s, app)
	}
	for _, fault := range u.faults(granted) {
		t.Error(fault)
	}
	for grant := range granted {
		less := maps.Clone(granted)
		delete(less, grant)
		if u.hasSeen(grant) && len(u.faults(less)) == 0 {
			t.Errorf("without the grant that %s this test would not fail", grant)
		}
	}
}

// faults says what was seen and not granted, and what was granted and not seen.
func (u *uses) faults(granted map[access]bool) (faults []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for seen := range u.seen {
		more := seen
		more.writes = true
		if seen.function != "" && !granted[seen] && !granted[more] {
			faults = append(faults, seen.String()+", and Terraform does not grant it")
		}
	}
	for grant := range granted {
		if !u.seen[grant] && !u.seenBehind(grant) && rare[grant] == "" {
			faults = append(faults, "Terraform grants that "+grant.String()+", and no request needs it")
		}
	}
	for grant := range rare {
		if !u.mayTo[grant] {
			faults = append(faults, "Terraform does not grant that "+grant.String()+": take it out of this test")
		}
	}
	slices.Sort(faults)
	return faults
}

func (u *uses) seenBehind(a access) bool {
	return slices.Contains(behind, a.what) && u.seen[access{"", a.what, true}]
}
