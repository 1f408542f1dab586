package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/command/local"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/stack"
)

func TestHealthyNamesTheVersion(t *testing.T) {
	s := startEngine(t, stack.Options{})
	affinity(t, "", "healthy", "--url", s.URL).wants(t, cli.ExitOK, s.URL+" is up, version "+api.Version)
}

func TestHealthyFailsWithoutAnEngine(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	affinity(t, "", "healthy", "--url", closed.URL).wants(t, cli.ExitFailed, "the engine is not up")
	affinity(t, "", "healthy", "--wait", "-1s").wants(t, cli.ExitUsage, "--wait")
}

// TestHealthyWaits answers only the second request.
func TestHealthyWaits(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get("X-Algolia-API-Key"); key == stack.DemoKey {
			t.Error("the command sent the key")
		}
		if asked++; asked == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		answer(w, http.StatusOK, api.Health{Status: 200, Version: "9.9.9", Release: "0a1b2c"})
	}))
	defer server.Close()
	affinity(t, "", "healthy", "--url", server.URL).wants(t, cli.ExitFailed)
	asked = 0
	affinity(t, "", "healthy", "--url", server.URL, "--wait", "1m").wants(t, cli.ExitOK, "version 9.9.9, commit 0a1b2c\n")
}

// TestUpTakesTheAppOfTheEnvironment starts engines that other machines could reach
// if the listener were not closed first, so they need a key of one's own.
func TestUpTakesTheAppOfTheEnvironment(t *testing.T) {
	started := func(set map[string]string, args ...string) ran {
		for _, name := range []string{command.AppVariable, command.KeyVariable, command.KeyFileVariable} {
			t.Setenv(name, set[name])
		}
		return affinityWith(t, t.Context(), "", func(tl *program) {
			tl.start = func(_ context.Context, o local.Options) (local.RunningStack, error) {
				return nil, &net.AddrError{Err: "started with", Addr: o.Apps[0].ID + ":" + o.Apps[0].Key}
			}
		}, append([]string{"up", "--addr", "0.0.0.0:8080"}, args...)...)
	}
	const long = "a-key-of-my-own-1234"
	started(map[string]string{}).wants(t, cli.ExitUsage, "set AFFINITY_KEY")
	started(map[string]string{command.KeyVariable: long}).wants(t, cli.ExitFailed, "demo:"+long)
	started(map[string]string{command.KeyVariable: long, command.AppVariable: "shop"}).wants(t, cli.ExitFailed, "shop:"+long)
	started(map[string]string{command.KeyFileVariable: file(t, "key", long)}).wants(t, cli.ExitFailed, "demo:"+long)
	started(map[string]string{command.KeyFileVariable: "/nowhere"}).wants(t, cli.ExitFailed, "read the key")
	started(map[string]string{command.KeyVariable: long}, "--app", "other:another-key-of-mine").wants(t, cli.ExitFailed, "other:another-key-of-mine")
	started(map[string]string{command.KeyVariable: "short"}).wants(t, cli.ExitUsage, "can be guessed")
}
