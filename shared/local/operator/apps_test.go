package operator_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/local/seal"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// start serves the routes over a store, and returns a client and the address.
func start(t *testing.T, store *config.Store, token string) (*operator.Client, string) {
	t.Helper()
	server := httptest.NewServer(operator.Handler(slog.New(slog.DiscardHandler), token, operator.Place{}, store, store, nil, time.Now, seal.New(), nil, nil, operator.Moves{}))
	t.Cleanup(server.Close)
	c, err := operator.NewClient(server.URL, token)
	must.Succeed(t, err)
	return c, server.URL
}

// The client answers what the store itself answers.
func TestClientIsTheStore(t *testing.T) {
	store, ctx := config.NewMemory(), t.Context()
	c, _ := start(t, store, operator.NewToken())
	log := schema.Of(schema.Narrow)
	log.Encoding = schema.Compact
	must.Succeed(t, c.CreateApp(ctx, config.App{ID: "shop", RetentionDays: 30, Log: log}))
	if err := c.CreateApp(ctx, config.App{ID: "shop"}); !errors.Is(err, config.ErrExists) {
		t.Errorf("creating it again: %v, want %v", err, config.ErrExists)
	}
	if err := c.SetRetention(ctx, "shop", 7); err != nil {
		t.Error(err)
	}
	if err := c.SetBrowserRanking(ctx, "shop", true); err != nil {
		t.Error(err)
	}
	if err := c.SetSegments(ctx, "shop", true); err != nil {
		t.Error(err)
	}
	if err := c.SetLimits(ctx, "shop", limit.Numbers{EventsPerSecond: 300}); err != nil {
		t.Error(err)
	}
	if a, err := c.SetEncoding(ctx, "shop", schema.JSON); err != nil || a.Log.Encoding != schema.JSON {
		t.Errorf("the encoding is %s (%v), want json", a.Log.Encoding, err)
	}
	key := config.Key{Hash: strings.Repeat("a", 64), ACL: []string{"search"}, CreatedAt: time.Unix(1, 0).UTC()}
	if err := c.PutKey(ctx, "shop", key); err != nil {
		t.Error(err)
	}
	got, err := c.App(ctx, "shop")
	want, storeErr := store.App(ctx, "shop")
	got.Strategy = want.Strategy // empty lists and missing ones are the same
	if diff := cmp.Diff(want, got); diff != "" || err != nil || storeErr != nil || want.RetentionDays != 7 || !want.BrowserRanking || !want.Segments.On() || want.Limits.EventsPerSecond != 300 {
		t.Errorf("the app (-store +client): %v %v\n%s", err, storeErr, diff)
	}
	if ids, err := c.Apps(ctx); err != nil || !cmp.Equal(ids, []string{"shop"}) {
		t.Errorf("apps %v, %v", ids, err)
	}
	if keys, err := c.Keys(ctx, "shop"); err != nil || !cmp.Equal(keys, []config.Key{key}) {
		t.Errorf("keys %v, %v, want %v", keys, err, key)
	}
	if err := c.DeleteKey(ctx, "shop", key.Hash); err != nil {
		t.Error(err)
	}
	if keys, err := c.Keys(ctx, "shop"); err != nil || len(keys) != 0 {
		t.Errorf("keys %v, %v, want none", keys, err)
	}
	for name, err := range map[string]error{
		"retention":  c.SetRetention(ctx, "nowhere", 1),
		"ranking":    c.SetBrowserRanking(ctx, "nowhere", true),
		"segments":   c.SetSegments(ctx, "nowhere", true),
		"limits":     c.SetLimits(ctx, "nowhere", limit.Numbers{}),
		"put key":    c.PutKey(ctx, "nowhere", key),
		"delete key": c.DeleteKey(ctx, "shop", key.Hash),
	} {
		if !errors.Is(err, config.ErrNotFound) {
			t.Errorf("%s: %v, want %v", name, err, config.ErrNotFound)
		}
	}
}

// A request that breaks a rule is refused with the rule.
func TestAppsRefuse(t *testing.T) {
	token := operator.NewToken()
	c, url := start(t, config.NewMemory(), token)
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"app id":    {c.CreateApp(t.Context(), config.App{ID: "a,b"}), "want 1 to 64 letters"},
		"retention": {c.SetRetention(t.Context(), "shop", -1), "retention of -1 days"},
		"limits":    {c.SetLimits(t.Context(), "shop", limit.Numbers{ReadsPerSecond: -1}), "readsPerSecond of -1"},
		"key":       {c.PutKey(t.Context(), "shop", config.Key{Hash: "not hashed"}), "not a SHA-256"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, test.err, test.want)
		}
	}
	if _, err := c.SetEncoding(t.Context(), "shop", "xml"); err == nil || !strings.Contains(err.Error(), "there are json and compact") {
		t.Errorf("encoding: %v", err)
	}
	for body, want := range map[string]int{"garbage": 400, `{"app":1}`: 400, strings.Repeat(" ", 65<<10): 413} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/local/apps/create", strings.NewReader(body))
		must.Succeed(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(r)
		must.Succeed(t, err)
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("body %.10q: %s, want %d", body, res.Status, want)
		}
	}
}
