package wordpress_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/wordpress"
	"github.com/affinityengine/affinity/scripts/affinity/wordpress/wordpresstest"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/catalog"
)

// engine holds one index in memory.
type engine struct {
	records  map[string]json.RawMessage
	ever     map[string]bool // the objectIDs that it has held
	settings api.Settings
	writes   int    // records stored
	refuses  string // the objectID that it does not take
	down     error  // the error of every batch
	batches  int    // how many it got
	dies     int    // the number of the batch at which it goes down
	applies  bool   // it applies this batch before it goes down
}

// errDied ends a run at a batch: what it did not save before is lost.
var errDied = errors.New("died")

func (e *engine) Batch(_ context.Context, _ string, actions ...api.BatchAction) (api.BatchAnswer, error) {
	if e.batches++; e.down != nil || e.batches == e.dies && !e.applies {
		return api.BatchAnswer{}, cmp.Or(e.down, errDied)
	}
	next := maps.Clone(e.records)
	for i, a := range actions {
		switch a.Action {
		case api.ActionClear:
			clear(next)
		case api.ActionDeleteObject:
			delete(next, a.ObjectID.(string))
		default:
			var r struct{ ObjectID string }
			if err := json.Unmarshal(a.Body, &r); err != nil || len(a.Body) > api.MaxRecord || r.ObjectID == e.refuses {
				return api.BatchAnswer{}, &api.Error{Status: http.StatusUnprocessableEntity, Message: fmt.Sprintf("requests[%d]: no", i)}
			}
			next[r.ObjectID], e.ever[r.ObjectID] = a.Body, true
			e.writes++
		}
	}
	e.records = next
	if e.batches == e.dies {
		return api.BatchAnswer{}, errDied
	}
	return api.BatchAnswer{}, nil
}

func (e *engine) Get(_ context.Context, _, id string) (json.RawMessage, error) {
	if record, ok := e.records[id]; ok {
		return record, nil
	}
	return nil, &api.Error{Status: http.StatusNotFound, Message: "not found"}
}

func (e *engine) Settings(context.Context, string) (api.Settings, error) { return e.settings, nil }

func (e *engine) SetSettings(_ context.Context, _ string, s api.Settings) (api.SettingsAnswer, error) {
	e.settings = s
	return api.SettingsAnswer{}, nil
}

// synced is a site, an engine and the state between them.
type synced struct {
	t      *testing.T
	site   *wordpresstest.Site
	engine *engine
	state  string
	warned []string
}

func start(t *testing.T, posts int) *synced {
	t.Helper()
	return &synced{
		t: t, site: wordpresstest.New(t, posts), engine: &engine{records: map[string]json.RawMessage{}, ever: map[string]bool{}},
		state: filepath.Join(t.TempDir(), "state.json"),
	}
}

// run runs the sync, with pages of 10 posts and short waits.
func (s *synced) run(change ...func(*wordpress.Options)) (wordpress.Summary, error) {
	s.t.Helper()
	retry := client.Retry{First: time.Microsecond, Max: time.Microsecond, Total: time.Minute}
	user, password, _ := strings.Cut(s.site.Login, ":")
	site, err := wordpress.Open(s.t.Context(), wordpress.Config{URL: s.site.URL, User: user, Password: password, Retry: retry})
	if err != nil {
		return wordpress.Summary{}, err
	}
	o := wordpress.Options{
		Site: site, Engine: s.engine, Target: wordpress.Target{Site: s.site.URL, Index: "posts"}, State: s.state, PerPage: 10,
		Progress: func(string, int, int) {}, Warn: func(text string) { s.warned = append(s.warned, text) },
	}
	for _, f := range change {
		f(&o)
	}
	return wordpress.Sync(s.t.Context(), o)
}

// done runs the sync and fails the test unless these posts were added, changed and
// removed, and the index is in step.
func (s *synced) done(added, changed, removed int, change ...func(*wordpress.Options)) wordpress.Summary {
	s.t.Helper()
	sum, err := s.run(change...)
	if err != nil {
		s.t.Fatal(err)
	}
	if got, want := []int{sum.Added, sum.Changed, sum.Removed}, []int{added, changed, removed}; !slices.Equal(got, want) {
		s.t.Errorf("added, changed, removed %v, want %v (%+v)", got, want, sum)
	}
	s.inStep()
	return sum
}

// inStep compares the index with the site.
func (s *synced) inStep() {
	s.t.Helper()
	want := map[string]string{}
	for id, p := range s.site.Posts {
		if p.Password == "" && (p.Status == "" || p.Status == "publish") {
			want[strconv.FormatInt(id, 10)] = s.site.Raw(id)
		}
	}
	got := map[string]string{}
	for id, record := range s.engine.records {
		got[id] = string(catalog.Post(record))
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		s.t.Errorf("the index does not hold the site's posts byte for byte (-site +index):\n%s", diff)
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
