package client_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/must"
)

// serve starts a server for the duration of a test.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func newClient(t *testing.T, cfg client.Config) *client.Client {
	t.Helper()
	cfg.App, cfg.Key = "shop", "s3cret"
	c, err := client.New(cfg)
	must.Succeed(t, err)
	return c
}

// once sends each request once.
func once(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	return newClient(t, client.Config{URL: serve(t, h), Retry: client.NoRetry})
}

func TestNewRefusesBadConfig(t *testing.T) {
	for _, cfg := range []client.Config{
		{URL: "", App: "a", Key: "k"},
		{URL: "example.com", App: "a", Key: "k"},
		{URL: "ftp://example.com", App: "a", Key: "k"},
		{URL: "https://", App: "a", Key: "k"},
		{URL: "https://example.com", Key: "k"},
		{URL: "https://example.com", App: "a"},
	} {
		if _, err := client.New(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

func TestRequestsNameTheApp(t *testing.T) {
	c := once(t, func(w http.ResponseWriter, r *http.Request) {
		if app, key := r.Header.Get("X-Algolia-Application-Id"), r.Header.Get("X-Algolia-API-Key"); app != "shop" || key != "s3cret" {
			t.Errorf("app %q, key %q", app, key)
		}
		_, _ = io.WriteString(w, `{}`)
	})
	if _, err := c.Strategies().Get(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNamesAreEscaped(t *testing.T) {
	var paths []string
	c := once(t, func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.RequestURI)
		_, _ = io.WriteString(w, `{}`)
	})
	_, err1 := c.Profiles().Get(t.Context(), "a/b+c=", api.ProfileQuery{Limit: 3, HalfLife: "7"})
	_, err2 := c.Profiles().Explain(t.Context(), "ann", api.ExplainQuery{Facet: "color", Value: "Rot & Grün"})
	_, err3 := c.Catalog().Get(t.Context(), "shoes/männer", "1?2")
	must.Succeed(t, errors.Join(err1, err2, err3))
	want := "/1/profiles/a%2Fb+c=?halfLife=7&limit=3 /1/explain/ann?facet=color&value=Rot+%26+Gr%C3%BCn /1/indexes/shoes%2Fm%C3%A4nner/1%3F2"
	if got := strings.Join(paths, " "); got != want {
		t.Errorf("paths: %s\nwant:  %s", got, want)
	}
}

func TestRefusalIsAnAPIError(t *testing.T) {
	for _, test := range []struct {
		name, body, retryAfter string
		want                   api.Error
	}{
		{"of the engine", `{"status":404,"message":"No profile"}`, "", api.Error{Status: 404, Message: "No profile"}},
		{"of something else", `<html>`, "7", api.Error{Status: 404, Message: "Not Found", RetryAfter: 7e9}},
		{"with another status in the body", `{"status":200,"message":"No"}`, "x", api.Error{Status: 404, Message: "No"}},
		{"with a date that is over", `{"message":"No"}`, "Sat, 21 Nov 2020 19:33:10 GMT", api.Error{Status: 404, Message: "No"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := once(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", test.retryAfter)
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, test.body)
			})
			_, err := c.Profiles().Get(t.Context(), "ann", api.ProfileQuery{})
			var refused *api.Error
			if !errors.As(err, &refused) || !reflect.DeepEqual(*refused, test.want) {
				t.Errorf("error %v, want %+v", err, test.want)
			}
			if want := "GET " + c.URL() + "/1/profiles/ann: 404 "; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("error %v does not begin with %q", err, want)
			}
		})
	}
}

func TestNoAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) }))
	c := newClient(t, client.Config{URL: server.URL + "/", Retry: client.NoRetry})
	if c.URL() != server.URL || c.App() != "shop" {
		t.Errorf("URL %q, app %q", c.URL(), c.App())
	}
	before := newClient(t, client.Config{URL: server.URL, Retry: client.NoRetry})
	if _, err := c.Strategies().Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Close()
	for c, there := range map[*client.Client]bool{c: true, before: false} {
		_, err := c.Strategies().Get(t.Context())
		var silent *client.UnreachableError
		if !errors.As(err, &silent) || silent.Reached != there || silent.URL != server.URL {
			t.Errorf("error %v, want one of an engine that is there: %v", err, there)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Strategies().Get(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("of a cancelled request: %v", err)
	}
}

func TestAnswerThatIsNotJSON(t *testing.T) {
	c := once(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })
	if _, err := c.Schema().Get(t.Context()); err == nil || !strings.Contains(err.Error(), "not what an Affinity engine sends") {
		t.Errorf("error %v", err)
	}
}

func TestWithRawAnswer(t *testing.T) {
	const answer = `{"userToken":"ann","new":1}` + "\n"
	c := once(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
	var raw []byte
	if _, err := c.Profiles().Get(client.WithRawAnswer(t.Context(), &raw), "ann", api.ProfileQuery{}); err != nil || string(raw) != answer {
		t.Errorf("raw answer %q, %v", raw, err)
	}
}

func TestGzipPacksLargeBodies(t *testing.T) {
	for _, size := range []int{10, 10_000} {
		lines := []byte(strings.Repeat("x", size))
		c := newClient(t, client.Config{Gzip: true, URL: serve(t, func(w http.ResponseWriter, r *http.Request) {
			body := io.Reader(r.Body)
			if packed := r.Header.Get("Content-Encoding") == "gzip"; packed != (size > 1024) {
				t.Errorf("a body of %d bytes is packed: %v", size, packed)
			} else if packed {
				unpacked, err := gzip.NewReader(r.Body)
				if err != nil {
					t.Error(err)
					return
				}
				body = unpacked
			}
			if got, err := io.ReadAll(body); err != nil || string(got) != string(lines) {
				t.Errorf("the engine reads %d bytes, %v; want %d", len(got), err, size)
			}
			_, _ = io.WriteString(w, `{}`)
		})})
		if _, err := c.Events().Import(t.Context(), "", lines); err != nil {
			t.Error(err)
		}
	}
}
