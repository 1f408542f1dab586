package main

import (
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/stack"
)

func TestIdentityCommands(t *testing.T) {
	s := startEngine(t, stack.Options{})
	run := func(args ...string) ran {
		return affinity(t, "", append(args, "--url", s.URL, "--app", "demo", "--key", "demokey")...)
	}
	run("identity", "link", "a1", "ann").wants(t, cli.ExitFailed, "affinity app identity APP --mode collect")
	_, err := s.Backends.CachedConfig.SetIdentity(t.Context(), "demo", config.Identity{Mode: config.IdentityCollect, Lookback: time.Hour}, 0)
	must(t, err)
	run("identity", "link", "a1").wants(t, cli.ExitUsage, "want an anonymous token and the user")
	run("identity", "show", "ann").wants(t, cli.ExitOK, "ann: role none, 0 links")
	run("identity", "link", "a1", "ann", "--reason", "by mail").wants(t, cli.ExitOK, "a1: role anonymous, 1 links", "open", "strong", "request by mail")
	run("identity", "show", "ann").wants(t, cli.ExitOK, "ann: role known, 1 links", "a1 ")
	run("identity", "unlink", "a1", "ann").wants(t, cli.ExitOK, "unlinked; evidence received up to ")
	run("identity", "show", "a1").wants(t, cli.ExitOK, "unlinked")
	run("identity", "unlink", "a1", "bob").wants(t, cli.ExitFailed, "The tokens are not linked")
}
