package stack_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/firestore"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/backtests"
	"github.com/affinityengine/affinity/shared/job/kinds/crowdbuild"
	"github.com/affinityengine/affinity/shared/job/kinds/deletion"
	"github.com/affinityengine/affinity/shared/job/kinds/linkpreview"
	"github.com/affinityengine/affinity/shared/job/kinds/migration"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/job/kinds/reenrich"
	"github.com/affinityengine/affinity/shared/job/kinds/reports"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentbuild"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentexport"
	"github.com/affinityengine/affinity/shared/local/disk"
	"github.com/affinityengine/affinity/shared/local/gcloudtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	diskrows "github.com/affinityengine/affinity/shared/local/rows"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/terraform"
)

// token is how the tokens of all users begin.
const token = "token-x9q-"

// The database of the configuration and the jobs has no region. No document of it names a
// user, while jobs run and after they have ended.
func TestDatabaseNamesNoUser(t *testing.T) {
	t.Parallel()
	race.Skip(t, "TestMoveRegion has the same goroutines")
	b, folder := &burdened{}, t.TempDir()
	s := b.run(t, stack.Options{Data: folder})
	must.Succeed(t, s.Close())
	wantNoUser(t, recordsOf(t, folder))
}

func TestFirestoreNamesNoUser(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", gcloudtest.Firestore(t))
	client, err := firestore.NewClientWithDatabase(t.Context(), stack.Project, terraform.Database)
	must.Succeed(t, err)
	must.CloseAtEnd(t, client)
	b := &burdened{between: func() { wantNoUser(t, documentsOf(t, client)) }}
	b.run(t, stack.Options{})
	wantNoUser(t, documentsOf(t, client))
}

var collections = []job.Collection{recompute.Collection, backtests.Collection, crowdbuild.Collection, reenrich.Collection, reports.Collection,
	linkpreview.Collection, migration.Collection, segmentbuild.Collection, segmentexport.Collection}

// burdened is an engine whose jobs find what they can only say of a user by their token.
type burdened struct {
	between func()       // is called while jobs have open shards
	fails   atomic.Value // the user whose row cannot be written
	region  string       // of the apps; empty: there are no regions
}

// refuse answers requests for the user's row with an error that names it.
func (b *burdened) refuse() []grpc.ServerOption {
	refused := func(req any) error {
		m, _ := req.(proto.Message)
		user, _ := b.fails.Load().(string)
		if m == nil || user == "" || !strings.Contains(prototext.Format(m), "/"+store.TableUsers) || !strings.Contains(prototext.Format(m), user+",") {
			return nil
		}
		return status.Errorf(codes.InvalidArgument, "the row of %s is broken", user)
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if err := refused(req); err != nil {
				return nil, err
			}
			return handle(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			return handle(srv, refusing{stream, refused})
		}),
	}
}

type refusing struct {
	grpc.ServerStream
	refused func(any) error
}

func (r refusing) RecvMsg(m any) error {
	if err := r.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return r.refused(m)
}

// run makes jobs of all kinds over users with tokens, faults and errors, and begins the
// deletion of an app, whose last shard waits.
func (b *burdened) run(t *testing.T, o stack.Options) *stack.Stack {
	t.Helper()
	o.Apps = []stack.App{{ID: "demo", Key: "demokey", Region: b.region}, {ID: "gone", Key: "gonekey", Region: b.region}}
	o.ConfigTTL, o.LateWrites, o.Layout, o.Bigtable = time.Millisecond, time.Hour, schema.Of(schema.Wide), b.refuse()
	o.Recompute = job.Settings{ShardUsers: 3, Budget: time.Second, Attempts: 2, Concurrency: 2}
	s := start(t, o)
	client := bigtableOf(t, s)
	if b.region != "" {
		client = bigtableAt(t, s, stack.Instance+"-"+b.region)
	}
	for _, app := range []string{"demo", "gone"} {
		b.fill(t, s, client, app)
	}
	ended := func() {
		t.Helper()
		if b.between != nil {
			b.between()
		}
		for _, c := range collections {
			waitForJobs(t, s, s.Backends.JobStore(c))
		}
	}
	wantStatus(t, s, http.StatusOK, "POST", "/1/recomputes", "")
	ended()
	backtestOf(t, s, `{"index":"i","strategies":[`+seenStrategy+`]}`)
	wantStatus(t, s, http.StatusOK, "POST", "/1/crowd", "")
	ended()
	wantStatus(t, s, http.StatusOK, "POST", "/1/reenrich", "{}")
	ended()
	wantStatus(t, s, http.StatusOK, "POST", "/1/identities/preview", "")
	ended()
	_, err := s.Backends.CachedConfig.SetHoldout(t.Context(), "demo", experiment.Holdout{Share: 0.2})
	must.Succeed(t, err)
	wantStatus(t, s, http.StatusOK, "POST", "/1/reports", `{"experiment":"holdout"}`)
	ended()
	for _, step := range []string{`start {"to":"narrow"}`, "backfill", "verify"} {
		path, body, _ := strings.Cut(step, " ")
		wantStatus(t, s, http.StatusOK, "POST", "/1/schema/"+path, body)
		ended()
	}
	must.Succeed(t, s.Backends.Config.SetSegments(t.Context(), "demo", true))
	code := http.StatusConflict
	for code == http.StatusConflict { // until functions have read the setting
		code, _ = call(t, s, "POST", "/1/segments/refresh", "")
	}
	if code != http.StatusOK {
		t.Fatalf("refresh of segments: %d", code)
	}
	ended()
	wantStatus(t, s, http.StatusOK, "PUT", "/1/segments/fans", `{"where":{"filter":"color:Red"}}`)
	wantStatus(t, s, http.StatusOK, "POST", "/1/segments/fans/export", "")
	ended()
	b.fails.Store(token + "07")
	var failed api.Recompute
	decode(t, wantStatus(t, s, http.StatusOK, "POST", "/1/recomputes", ""), &failed)
	ended()
	decode(t, wantStatus(t, s, http.StatusOK, "GET", "/1/recomputes/"+failed.ID, ""), &failed)
	if failed.State != api.JobFailed || !strings.Contains(failed.Error, token+"07") {
		t.Errorf("the recompute is %s, %q; want an error that names a user", failed.State, failed.Error)
	}
	b.fails.Store("")
	if _, err := s.Backends.Deletions.Delete(t.Context(), "gone", false); err != nil {
		t.Fatal(err)
	}
	// Only the last shard is left.
	waitForDeletion(t, s, "gone", func(status deletion.Status) bool { return !status.WaitsUntil.IsZero() })
	b.wantDetails(t, client)
	return s
}

// fill gives an app users, one of whom has an event that nobody can decode.
func (b *burdened) fill(t *testing.T, s *stack.Stack, client *bigtable.Client, app string) {
	t.Helper()
	post := func(path, body string) {
		t.Helper()
		wantStatusAs(t, s, http.StatusOK, app, app+"key", "POST", path, body)
	}
	post("/1/strategies/personalization", seenStrategy)
	post("/1/indexes/i/batch", `{"requests":[{"action":"addObject","body":{"objectID":"1","color":"Red"}}]}`)
	var events []string
	for user := range 12 {
		for i := range 2 {
			events = append(events, fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":"%s%02d","filters":["color:Red"],"timestamp":%d}`,
				token, user, time.Now().Add(time.Duration(i-9)*time.Hour).UnixMilli()))
		}
	}
	events = append(events, fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":"%s11","authenticatedUserToken":"%[1]s12","filters":["color:Red"]}`, token))
	post("/1/events", `{"events":[`+strings.Join(events, ",")+`]}`)
	idle(t, s)
	m := bigtable.NewMutation()
	m.Set("m", "event", bigtable.Now(), []byte("x"))
	must.Succeed(t, client.Open(store.TableEvents).Apply(t.Context(), app+","+token+"04,"+time.Now().Add(-time.Hour).UTC().Format("2006-01-02T15"), m))
}

// wantDetails checks that the table of details names users in every kind of detail, so that
// the database has had the occasion to.
func (b *burdened) wantDetails(t *testing.T, client *bigtable.Client) {
	t.Helper()
	named, in := map[string]bool{}, map[string]bool{}
	err := client.Open(store.TableJobs).ReadRows(t.Context(), bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		for _, cells := range r {
			for _, cell := range cells {
				var fields map[string]any
				if err := json.Unmarshal(cell.Value, &fields); err != nil {
					t.Errorf("row %q: %v", r.Key(), err)
				}
				for field, value := range fields {
					if strings.Contains(fmt.Sprint(value), token) {
						named[field], in[strings.Split(r.Key(), ",")[1]] = true, true
					}
				}
			}
		}
		return true
	})
	must.Succeed(t, err)
	for _, field := range []string{"from", "to", "next", "faults", "result", "error"} {
		if !named[field] {
			t.Errorf("no detail %s names a user", field)
		}
	}
	for _, c := range []string{"recomputes", "crowds", "linkPreviews", "migrations", "reenrichments", "segmentBuilds", "deletionJobs"} {
		if !in[c] {
			t.Errorf("no detail of %s names a user", c)
		}
	}
}

// wantNoUser checks that no text holds a token.
func wantNoUser(t *testing.T, texts map[string]string) {
	t.Helper()
	jobs := 0
	for name, text := range texts {
		if strings.Contains(name+text, token) {
			t.Errorf("document %s names a user: %s", name, text)
		}
		if strings.Contains(name, "recomputes/") {
			jobs++
		}
	}
	if jobs < 3 {
		t.Errorf("only %d of %d documents are of recomputes and their shards", jobs, len(texts))
	}
}

// recordsOf returns the records of the configuration and the jobs in a data folder.
func recordsOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	d, err := disk.Open(folder, diskrows.Join, slog.New(slog.DiscardHandler))
	must.Succeed(t, err)
	texts := map[string]string{}
	for _, space := range stack.DatabaseSpaces {
		err := d.Records(space).Load(func(name string, value []byte) error { texts[name] = string(value); return nil })
		if err != nil {
			t.Error(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	return texts
}

// documentsOf returns all documents of a database by path.
func documentsOf(t *testing.T, client *firestore.Client) map[string]string {
	t.Helper()
	texts := map[string]string{}
	var walk func(collections *firestore.CollectionIterator)
	walk = func(collections *firestore.CollectionIterator) {
		all, err := collections.GetAll()
		must.Succeed(t, err)
		for _, c := range all {
			refs := c.DocumentRefs(t.Context()) // also of documents that do not exist and have others below them
			for {
				ref, err := refs.Next()
				if errors.Is(err, iterator.Done) {
					break
				}
				must.Succeed(t, err)
				if d, err := ref.Get(t.Context()); err == nil {
					texts[ref.Path] = fmt.Sprint(d.Data())
				} else if status.Code(err) != codes.NotFound {
					t.Fatal(err)
				}
				walk(ref.Collections(t.Context()))
			}
		}
	}
	walk(client.Collections(t.Context()))
	return texts
}
