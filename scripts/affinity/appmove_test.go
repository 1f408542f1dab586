package main

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// An app moves, and turns back, by commands, which say how far it is and what comes first.
func TestAppMove(t *testing.T) {
	s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond, Life: time.Second, Regions: []string{"eu", "us"}})
	t.Setenv(operator.Variable, s.Operator)
	app := func(line string) ran {
		return affinity(t, "", strings.Fields("app --url "+s.URL+" "+line)...)
	}
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
	app("move shop --to eu").wants(t, cli.ExitFailed, "App shop moves from eu to us, phase mark: it must arrive, or go back, first")
	app("move shop --back --wait").wants(t, cli.ExitOK, "app shop is in region eu, and no other region holds anything of it")
	app("move shop --to us").wants(t, cli.ExitOK, "moving users and the catalog", "app shop is in region us; a job deletes what the other region holds")
	app("move shop --back").wants(t, cli.ExitFailed, "the move cannot be undone any more")
	app("move shop --to us --wait").wants(t, cli.ExitOK, "app shop is in region us, and no other region holds anything of it")
}

// stoppedMove is the move of an app whose job has failed in a phase.
type stoppedMove struct {
	mover
	back  bool
	phase config.MovePhase
}

func (m stoppedMove) Moving(context.Context, string) (operator.MoveStatus, error) {
	return operator.MoveStatus{
		Region: "us", Move: config.Move{ID: "m", From: "eu", To: "us", Births: "us", Phase: m.phase, Back: m.back},
		State: job.Failed, Error: "2 rows are left",
	}, nil
}

func (m stoppedMove) Move(ctx context.Context, id, _ string) (operator.MoveStatus, error) {
	return m.Moving(ctx, id)
}

// A job that has failed is shown in every phase, also to who does not wait for its end.
func TestAppMoveShowsFailedJobs(t *testing.T) {
	for _, phase := range []config.MovePhase{config.MoveUsers, config.MoveDropping, config.MoveErasing, config.MoveFinishing} {
		var out strings.Builder
		a := &appTool{tool: &tool{out: &out, err: io.Discard, watchEvery: time.Millisecond}}
		want := "the move of app shop has stopped in phase " + string(phase) + "; run the command again: 2 rows are left"
		for _, wait := range []bool{false, true} {
			err := a.move(t.Context(), stoppedMove{phase: phase}, "shop", moveOptions{to: "us", wait: wait})
			if err == nil || err.Error() != want || out.Len() > 0 {
				t.Errorf("%q (%v), want %q", out.String(), err, want)
			}
		}
		for back, again := range map[bool]string{false: "--to us", true: "--back"} {
			s, _ := stoppedMove{phase: phase, back: back}.Moving(t.Context(), "shop")
			want := "; the job of the phase is failed, and affinity app move shop " + again + " resumes it: 2 rows are left"
			if got := moveProgress("shop", s); !strings.HasSuffix(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
}

// turnedMove is a move that another command turns back.
type turnedMove struct {
	mover
	now operator.MoveStatus
}

func (m turnedMove) Moving(context.Context, string) (operator.MoveStatus, error) { return m.now, nil }

func (turnedMove) Move(context.Context, string, string) (operator.MoveStatus, error) {
	return operator.MoveStatus{Region: "eu", Move: config.Move{ID: "m", From: "eu", To: "us", Births: "us", Phase: config.MoveUsers}}, nil
}

// Who waits for a move hears when another command has turned it back.
func TestAppMoveTurnedBack(t *testing.T) {
	for want, now := range map[string]operator.MoveStatus{
		"app shop is in region eu":                                       {Region: "eu"},
		"app shop moves from us to eu: completing what was left halfway": {Region: "eu", Move: config.Move{ID: "m", From: "us", To: "eu", Births: "eu", Phase: config.MoveArriving, Back: true}},
		"app shop moves from eu to asia: giving each user an owner":      {Region: "eu", Move: config.Move{ID: "n", From: "eu", To: "asia", Births: "eu", Phase: config.MoveMarking}},
	} {
		var out strings.Builder
		a := &appTool{tool: &tool{out: &out, err: io.Discard, watchEvery: time.Millisecond}}
		err := a.move(t.Context(), turnedMove{now: now}, "shop", moveOptions{to: "us", wait: true})
		if want = "the move of app shop to us has been changed by another command: " + want; err == nil || !strings.HasPrefix(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%q (%v), want %q", out.String(), err, want)
		}
	}
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
	t.Setenv(operator.Variable, s.Operator)
	app := func(line string) ran {
		return affinity(t, "", strings.Fields("app --url "+s.URL+" "+line)...)
	}
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

// The demo of a move shows that clients notice nothing.
func TestDemoMove(t *testing.T) {
	if testing.Short() {
		t.Skip("-short waits for no demo of half a minute")
	}
	t.Parallel()
	ran := affinityWith(t, t.Context(), "", func(tl *tool) {
		tl.start = func(ctx context.Context, o upOptions) (runningStack, error) {
			s, err := stack.Start(ctx, stack.Options{Addr: o.Addr, Data: o.Data, Apps: []stack.App{{ID: "demo", Key: demoKey}}, Regions: o.Regions, Life: o.RequestLimit,
				Operator: o.Operator, ConfigTTL: time.Millisecond, Log: slog.New(slog.DiscardHandler)})
			return localStack{s}, err
		}
	}, strings.Fields("demo move --moves 1 --rate 5 --users 5 --rest 1s --request-limit "+race.Or("5s", "15s"))...)
	ran.wants(t, cli.ExitOK, "at rest ", "to us ", "of 5 users are in region us, each once; no request failed, and no profile lost what it had shown")
	affinity(t, "", "demo", "move", "--moves", "0").wants(t, cli.ExitUsage, "--moves must be at least 1")
}

// A visitor says what is wrong.
func TestVisitorsNotice(t *testing.T) {
	s := startEngine(t, stack.Options{})
	c, err := client.New(client.Config{URL: s.URL, App: "demo", Key: demoKey, Retry: client.NoRetry})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetStrategyJSON(t.Context(), []byte(moveStrategy)); err != nil {
		t.Fatal(err)
	}
	v := newVisitors(c, 40)
	v.timed.Store(newTimes())
	ctx, stop := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	sending.Go(func() { v.send(ctx, 500) })
	for v.total.Load() < 40 {
		time.Sleep(time.Millisecond) // until each has an event
	}
	stop()
	sending.Wait()
	if err := v.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	v.shown[0] = 1e9
	ctx, stop = context.WithCancel(t.Context())
	sending.Go(func() { v.read(ctx, 500) })
	for v.timed.Load().count() < 40 {
		time.Sleep(time.Millisecond) // until one is read
	}
	stop()
	sending.Wait()
	if err := v.check(t.Context()); err == nil || !strings.Contains(err.Error(), "the profile of visitor-0 shows") {
		t.Errorf("a profile that lost events: %v", err)
	}
}
