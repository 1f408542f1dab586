package function_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/backend/function"
)

type settings struct {
	Name string `env:"FUNCTION_TEST_NAME,required"`
}

var errSize = errors.New("SIZE is 0: want 1 or more")

func (settings) Validate() error { return errSize }

func get(h http.Handler) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	return w
}

// Missing variables and invalid ones are logged together, and not by each request.
// The answer, which anybody can read, names none of them.
func TestUnconfiguredFunctionAnswers(t *testing.T) {
	var out bytes.Buffer
	h := function.NewLazy(slog.New(slog.NewTextHandler(&out, nil)), func(context.Context, *slog.Logger, settings) (http.Handler, error) {
		t.Error("the function is opened without its settings")
		return nil, nil
	})
	for range 3 {
		w := get(h)
		if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "FUNCTION_TEST_NAME") ||
			strings.Contains(w.Body.String(), "SIZE") || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%d %s, want 503 without the faults", w.Code, w.Body)
		}
	}
	if log := out.String(); strings.Count(log, "FUNCTION_TEST_NAME") != 1 || strings.Count(log, errSize.Error()) != 1 {
		t.Errorf("logged %s, want all faults once", log)
	}
}

// A function whose backends cannot be opened is opened again at the next request.
func TestFunctionOpensWhenItCan(t *testing.T) {
	ready, opened := false, 0
	h := function.NewLazy(slog.New(slog.DiscardHandler), func(context.Context, *slog.Logger, struct{}) (http.Handler, error) {
		if opened++; !ready {
			return nil, errors.Join(errors.New("A is not set"), errors.New("B is not set"))
		}
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }), nil
	})
	if w := get(h); w.Code != 503 {
		t.Errorf("%d %s, want 503", w.Code, w.Body)
	}
	ready = true
	for range 2 {
		if w := get(h); w.Code != http.StatusTeapot {
			t.Errorf("%d, want the function once it opens", w.Code)
		}
	}
	if opened != 2 {
		t.Errorf("opened %d times, want 2", opened)
	}
}

// Terraform's probes ask a function for one path, which it answers itself once its backends are open.
func TestProbesAreAnsweredBeforeTheFunction(t *testing.T) {
	text, err := os.ReadFile("../../../terraform/modules/function/main.tf")
	if err != nil {
		t.Fatal(err)
	}
	paths := regexp.MustCompile(`path = "([^"]+)"`).FindAllSubmatch(text, -1)
	if len(paths) != 2 {
		t.Fatalf("modules/function has %d paths of probes, so it has another form", len(paths))
	}
	fault := errors.New("BIGTABLE_PROJECT is not set")
	h := function.NewLazy(slog.New(slog.DiscardHandler), func(context.Context, *slog.Logger, struct{}) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }), fault
	})
	ask := func(method, path string, want int) {
		t.Helper()
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, httptest.NewRequest(method, path, nil)); w.Code != want {
			t.Errorf("%s %s: %d, want %d", method, path, w.Code, want)
		}
	}
	probe := string(paths[0][1])
	if string(paths[1][1]) != probe {
		t.Errorf("the probes ask for %s and %s", probe, paths[1][1])
	}
	ask("GET", probe, http.StatusServiceUnavailable)
	fault = nil
	ask("GET", probe, http.StatusOK)
	ask("POST", probe, http.StatusTeapot)
	ask("GET", "/", http.StatusTeapot)
}
