package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command/local"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// An app moves, and turns back, by commands, which say how far it is and what comes first.
func TestAppMove(t *testing.T) {
	s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond, Life: time.Second, Regions: []string{"eu", "us"}})
	app := onLocal(t, s)
	app("create shop --region mars").wants(t, cli.ExitFailed, `there is no region "mars": the regions are eu, us`)
	app("create shop --region Mars!").wants(t, cli.ExitUsage, "a region has 1 to 40 of")
	app("create shop --region eu").wants(t, cli.ExitOK)
	app("region shop").wants(t, cli.ExitOK, "app shop is in region eu\n")
	app("region nowhere").wants(t, cli.ExitFailed, "there is no such app")
	app("move shop").wants(t, cli.ExitUsage, "give either --to REGION or --back")
	app("move shop --to us --back").wants(t, cli.ExitUsage, "give either --to REGION or --back")
	app("move shop --back --dry-run").wants(t, cli.ExitUsage, "--dry-run goes with --to")
	app("move shop --to asia").wants(t, cli.ExitFailed, `There is no region "asia": the regions are eu, us`)
	app("move shop --back").wants(t, cli.ExitFailed, "App shop does not move")
	app("move nowhere --to us").wants(t, cli.ExitFailed, "there is no such app")
	app("move shop --to us --dry-run").wants(t, cli.ExitOK, "app shop can move from eu to us: 0 users, in 6s or more; nothing has moved")
	app("region shop").wants(t, cli.ExitOK, "app shop is in region eu\n")
	app("move shop --to us --no-wait").wants(t, cli.ExitOK, "app shop moves from eu to us: giving each user an owner")
	app("move shop --to eu").wants(t, cli.ExitFailed, "App shop moves from eu to us, phase mark: it must arrive, in 5s or more, or go back, first; --wait of its move waits for the end")
	app("move shop --back --wait").wants(t, cli.ExitOK, "app shop is in region eu, and no other region holds anything of it")
	app("move shop --to us").wants(t, cli.ExitOK, "app shop is in region us in 3s or more: three times, everything waits", "moving users and the catalog", "app shop is in region us; a job deletes what the other region holds")
	app("move shop --back").wants(t, cli.ExitFailed, "the move cannot be undone any more")
	app("move shop --to us --wait").wants(t, cli.ExitOK, "app shop is in region us, and no other region holds anything of it")
}

// An engine without regions says how it gets some.
func TestAppMoveWithoutRegions(t *testing.T) {
	s := startEngine(t, stack.Options{})
	t.Setenv(operator.Variable, s.Operator)
	affinity(t, "", "app", "--url", s.URL, "move", "demo", "--to", "us").wants(t, cli.ExitFailed, "This engine has no regions: start it with --regions eu,us")
	affinity(t, "", "app", "--url", s.URL, "create", "shop", "--region", "us").wants(t, cli.ExitFailed, "this deployment has no regions")
	affinity(t, "", "up", "--regions", "eu,eu").wants(t, cli.ExitUsage, "there once")
}

// An app moves to tables of its own and back, by commands that find them.
func TestAppIsolate(t *testing.T) {
	s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond, Life: time.Second, Tables: []string{"big"}})
	app := onLocal(t, s)
	app("isolate demo --common").wants(t, cli.ExitFailed, "App demo is not isolated: it is in the common tables of region main")
	app("isolate demo --tables huge").wants(t, cli.ExitFailed, `Region main has no set of tables "huge": there are big`)
	app("isolate nowhere").wants(t, cli.ExitFailed, "there is no such app")
	app("isolate demo --tables big --common").wants(t, cli.ExitUsage, "--common excludes --tables")
	app("isolate demo --dry-run").wants(t, cli.ExitOK, "app demo can move from main to big: 0 users")
	app("isolate demo --wait").wants(t, cli.ExitOK, "app demo is in region big, and no other region holds anything of it")
	app("isolate demo").wants(t, cli.ExitFailed, "App demo is in region big already")
	app("isolate demo --common --wait").wants(t, cli.ExitOK, "app demo is in region main, and no other region holds anything of it")
	affinity(t, "", "up", "--tables", "us/big").wants(t, cli.ExitUsage, "REGION/NAME with a region of --regions")
	affinity(t, "", "up", "--tables", "Big!").wants(t, cli.ExitUsage, `--tables "Big!"`)
}

func TestAppIsolateWithoutTables(t *testing.T) {
	s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond, Regions: []string{"eu", "us"}})
	t.Setenv(operator.Variable, s.Operator)
	affinity(t, "", "app", "--url", s.URL, "isolate", "demo").wants(t, cli.ExitFailed, "Region eu has no set of tables for isolated apps: `affinity up --tables NAME`")
}

// engineStack is an engine as a local stack.
type engineStack struct{ *stack.Stack }

func (s engineStack) URL() string { return s.Stack.URL }

func (s engineStack) ConsoleLink(app, key string) string {
	return s.Stack.ConsoleLink(stack.App{ID: app, Key: key})
}

// The demo of a move shows that clients notice nothing.
func TestDemoMove(t *testing.T) {
	if testing.Short() {
		t.Skip("-short waits for no demo of half a minute")
	}
	t.Parallel()
	ran := affinityWith(t, t.Context(), "", func(tl *program) {
		tl.start = func(ctx context.Context, o local.Options) (local.RunningStack, error) {
			s, err := stack.Start(ctx, stack.Options{Addr: o.Addr, Data: o.Data, Apps: []stack.App{{ID: "demo", Key: stack.DemoKey}}, Regions: o.Regions, Life: o.RequestLimit,
				Operator: o.Operator, ConfigTTL: time.Millisecond, Log: slog.New(slog.DiscardHandler)})
			return engineStack{s}, err
		}
	}, strings.Fields("demo move --moves 1 --rate 5 --users 5 --rest 1s --request-limit "+race.Or("5s", "15s"))...)
	ran.wants(t, cli.ExitOK, "at rest ", "to us ", "of 5 users are in region us, each once; no request failed, and no profile lost what it had shown")
	affinity(t, "", "demo", "move", "--moves", "0").wants(t, cli.ExitUsage, "--moves must be at least 1")
}
