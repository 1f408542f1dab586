package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

const schemaStrategy = `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":3},{"eventName":"Bought","eventType":"conversion","score":7}],
	"facetsScoring":[{"facetName":"color","score":2},{"facetName":"brand","score":1}],"personalizationImpact":50}`

// schemaUsers have events in the log of an engine by startNarrow.
const schemaUsers = 7

// startNarrow starts an engine whose log is narrow, with a strategy and imported
// events. Every instance follows a change of the configuration after twice ttl.
func startNarrow(t *testing.T, ttl time.Duration) *stack.Stack {
	t.Helper()
	s, err := stack.Start(t.Context(), stack.Options{
		Apps: []stack.App{{ID: "demo", Key: "demokey"}}, RetentionDays: 90, Layout: schema.Of(schema.Narrow), ConfigTTL: ttl,
	})
	must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	var events []string
	for i := range 3 * schemaUsers {
		kind, name := "view", "Seen"
		if i%4 == 0 {
			kind, name = "conversion", "Bought"
		}
		events = append(events, fmt.Sprintf(`{"eventType":%q,"eventName":%q,"userToken":"u%d","timestamp":%d,"filters":["color:c%d","brand:Acme"]}`,
			kind, name, i%schemaUsers, s.Backends.Now().Add(-time.Duration(i)*time.Hour).UnixMilli(), i%5))
	}
	affinity(t, schemaStrategy, "strategy", "set", "-", "--url", s.URL).wants(t, cli.ExitOK)
	affinity(t, "", "import", "--no-wait", "--index", "i", "--url", s.URL, file(t, "events.ndjson", events...)).wants(t, cli.ExitOK)
	return s
}

// served are the profiles of all users as they are served.
func served(t *testing.T, s *stack.Stack) map[string][]api.Affinity {
	t.Helper()
	all := map[string][]api.Affinity{}
	for i := range schemaUsers {
		user := fmt.Sprint("u", i)
		r := affinity(t, "", "profile", user, "--json", "--url", s.URL)
		r.wants(t, cli.ExitOK)
		var p api.Profile
		must(t, json.Unmarshal([]byte(r.out), &p))
		all[user] = p.Affinities
	}
	return all
}

// schemaStepTest is a command line after `affinity schema` and its outcome.
type schemaStepTest struct {
	args  string
	code  int
	wants []string
}

// TestSchemaJourney migrates a log from narrow to wide and tries steps out of
// order. After every command all profiles are the same.
func TestSchemaJourney(t *testing.T) {
	t.Parallel()
	s := startNarrow(t, 20*time.Millisecond)
	want := served(t, s)
	if len(want["u0"]) == 0 {
		t.Fatal("u0 has no affinities, so nothing is compared")
	}
	for _, c := range []schemaStepTest{
		{"status", cli.ExitOK, []string{"the log is read from narrow; narrow is written, encoding json\n", "next: affinity schema start --to wide "}},
		{"backfill", cli.ExitFailed, []string{"schema backfill: No migration is under way: `affinity schema start --to wide` comes first"}},
		{"drop --schema narrow", cli.ExitFailed, []string{"Reads use narrow"}},

		{"start --to wide", cli.ExitOK, []string{"narrow and wide are written, narrow is read, on every instance\n", "next: affinity schema backfill "}},
		{"start --to narrow", cli.ExitFailed, []string{"A migration from narrow to wide is under way"}},
		{"verify", cli.ExitFailed, []string{"`affinity schema backfill` comes first"}},
		{"cutover", cli.ExitFailed, []string{"The older events are not copied yet"}},
		{"status", cli.ExitOK, []string{"narrow and wide are written", "from narrow to wide", "step 1 of 5: both schemas are written\n", "next: affinity schema rollback "}},

		{"backfill --rate 0", cli.ExitOK, []string{"is done: 21 rows copied, 0 skipped in ", "next: affinity schema verify "}},
		{"cutover", cli.ExitFailed, []string{"`affinity schema verify` comes first"}},
		{"verify", cli.ExitOK, []string{"is done: 21 rows are the same in narrow and wide in ", "next: affinity schema cutover "}},
		{"status", cli.ExitOK, []string{"step 3 of 5: verification\n", "7 of 7 users, 21 rows compared, 0 different, 0 of these repaired\n"}},
		{"cutover", cli.ExitOK, []string{"wide is read, narrow and wide are written, on every instance\n", "next: affinity schema drop --schema narrow "}},
		{"rollback", cli.ExitOK, []string{"narrow is read again, narrow and wide are written, on every instance\n"}},
		{"drop --schema wide", cli.ExitFailed, []string{"A migration to wide is under way"}},
		{"verify", cli.ExitOK, []string{"21 rows are the same"}},
		{"cutover", cli.ExitOK, []string{"wide is read"}},
		{"cutover", cli.ExitOK, []string{"wide is read"}},
		{"drop --schema wide", cli.ExitFailed, []string{"Reads use wide"}},
		{"drop --schema narrow", cli.ExitOK, []string{"narrow is dropped: 21 rows removed in "}},
		{"rollback", cli.ExitFailed, []string{"No migration is under way"}},
		{"status", cli.ExitOK, []string{"the log is read from wide; wide is written, encoding json\n", "ended with the drop of the old schema\n", "21 rows removed", "next: affinity schema start --to narrow "}},

		{"start --to narrow", cli.ExitOK, nil},
		{"backfill", cli.ExitOK, []string{"21 rows copied"}},
		{"rollback", cli.ExitOK, []string{"the migration to narrow is abandoned: 21 rows removed in "}},
	} {
		args := append([]string{"schema"}, strings.Fields(c.args)...)
		affinity(t, "", append(args, "--url", s.URL)...).wants(t, c.code, c.wants...)
		if diff := cmp.Diff(want, served(t, s)); diff != "" {
			t.Fatalf("after schema %s profiles differ (-before +after):\n%s", c.args, diff)
		}
	}
}

func TestSchemaUsage(t *testing.T) {
	t.Parallel()
	for args, wants := range map[string]string{
		"":                         "affinity schema needs a command",
		"start":                    "--to is required: narrow or wide",
		"start --to tall":          `--to: schema "tall" does not exist: there are narrow and wide`,
		"start wide":               "unknown command",
		"drop":                     "--schema is required: narrow or wide",
		"drop --schema both":       `--schema: schema "both" does not exist: there are narrow and wide`,
		"backfill --rate -1":       "--rate -1: must be 0 (no limit) to 1000000 rows per second",
		"backfill --rate 1000001":  "--rate 1000001",
		"backfill --rate much":     "invalid argument",
		"verify --schema wide":     "unknown flag",
		"cutover --url ftp://host": "must be an http or https address",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			affinity(t, "", append([]string{"schema"}, strings.Fields(args)...)...).wants(t, cli.ExitUsage, wants)
		})
	}
}

// A backfill names the key of a row that does not decode. The verification fails
// until the row is removed.
func TestSchemaDamagedRow(t *testing.T) {
	t.Parallel()
	s := startNarrow(t, time.Millisecond)
	log := s.Backends.Store.Events.Log("demo", schema.Of(schema.Narrow))
	at := s.Backends.Now().Add(-48 * time.Hour).UnixMilli()
	// A row without a known column, whose original event is truncated.
	broken := []store.LogEvent{{User: "u1", Time: at, ID: "broken", Type: "m", Name: "z", Original: []byte(`{"event":{`)}}
	must(t, log.Append(t.Context(), broken))
	key := fmt.Sprintf("demo,u1,%s,broken", time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z"))
	for _, c := range []schemaStepTest{
		{"start --to wide", cli.ExitOK, nil},
		{"backfill", cli.ExitFailed, []string{"is done: 21 rows copied, 1 skipped in ", key, "repair or remove them and run `affinity schema backfill` again"}},
		{"status", cli.ExitOK, []string{"21 rows copied, 1 skipped", key, "next: affinity schema verify "}},
		{"verify", cli.ExitFailed, []string{"failed: 1 row or profiles differed between narrow and wide, and it repaired 0", key}},
		{"cutover", cli.ExitFailed, []string{"The verification is failed: it must pass before the cutover"}},
		{"status", cli.ExitOK, []string{"22 rows compared, 1 different, 0 of these repaired\n", key, "next: affinity schema backfill "}},
	} {
		args := append([]string{"schema"}, strings.Fields(c.args)...)
		affinity(t, "", append(args, "--url", s.URL)...).wants(t, c.code, c.wants...)
	}
	must(t, log.Delete(t.Context(), broken))
	affinity(t, "", "schema", "backfill", "--url", s.URL).wants(t, cli.ExitOK, "21 rows copied, 0 skipped")
	affinity(t, "", "schema", "verify", "--url", s.URL).wants(t, cli.ExitOK, "21 rows are the same")
	affinity(t, "", "schema", "cutover", "--url", s.URL).wants(t, cli.ExitOK)
}

// A verification repairs the rows that it finds missing, and passes only if none
// was missing.
func TestSchemaMissingRow(t *testing.T) {
	t.Parallel()
	s := startNarrow(t, time.Millisecond)
	affinity(t, "", "schema", "start", "--to", "wide", "--url", s.URL).wants(t, cli.ExitOK)
	affinity(t, "", "schema", "backfill", "--url", s.URL).wants(t, cli.ExitOK)
	log, missing := s.Backends.Store.Events.Log("demo", schema.Of(schema.Narrow)), ""
	err := log.Scan(t.Context(), schema.Wide, store.Range{}, 0, func(e store.Entry) error {
		missing = e.Key()
		return nil
	})
	must(t, errors.Join(err, log.DeleteEntries(t.Context(), schema.Wide, []string{missing})))
	affinity(t, "", "schema", "verify", "--url", s.URL).wants(t, cli.ExitFailed, missing+": only in narrow, now repaired",
		"1 row or profiles differed between narrow and wide, and it repaired 1. `affinity schema verify` compares again")
	affinity(t, "", "schema", "cutover", "--url", s.URL).wants(t, cli.ExitFailed, "it must pass before the cutover")
	affinity(t, "", "schema", "verify", "--url", s.URL).wants(t, cli.ExitOK, "21 rows are the same")
}

// stopper ends a context as soon as a text is printed.
type stopper struct {
	bytes.Buffer
	text string
	stop context.CancelFunc
}

func (s *stopper) Write(p []byte) (int, error) {
	n, err := s.Buffer.Write(p)
	if strings.Contains(s.String(), s.text) {
		s.stop()
	}
	return n, err
}

// interrupt runs a command until it prints a text, and interrupts it then.
func interrupt(t *testing.T, text string, args ...string) ran {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &stopper{text: text, stop: stop}
	r := affinityWith(t, ctx, "", func(tl *program) { tl.Err = out }, args...)
	r.err = out.String()
	return r
}

// An interrupted command leaves the work running.
func TestSchemaInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("-short waits for no migration of half a minute")
	}
	t.Parallel()
	// Several commands must run before the instances follow, also on a busy machine.
	s := startNarrow(t, 4*time.Second)
	interrupt(t, "on every instance in ", "schema", "start", "--to", "wide", "--url", s.URL).wants(t, cli.ExitFailed,
		"interrupted: narrow and wide are written, narrow is read, and every instance follows within seconds: run `affinity schema start --to wide` again")
	interrupt(t, "waiting to begin", "schema", "backfill", "--rate", "5000", "--url", s.URL).wants(t, cli.ExitFailed,
		"at most 5,000 rows/s", "continues: run `affinity schema backfill` again to wait for it")
	affinity(t, "", "schema", "verify", "--url", s.URL).wants(t, cli.ExitFailed, "The backfill is planning: it must complete first")
	affinity(t, "", "schema", "start", "--to", "narrow", "--url", s.URL).wants(t, cli.ExitFailed, "A migration from narrow to wide is under way (backfill)")
	affinity(t, "", "schema", "backfill", "--url", s.URL).wants(t, cli.ExitOK, "at most 5,000 rows/s", "21 rows copied")
	affinity(t, "", "schema", "verify", "--url", s.URL).wants(t, cli.ExitOK)
	interrupt(t, "on every instance in ", "schema", "cutover", "--url", s.URL).wants(t, cli.ExitFailed, "run `affinity schema cutover` again to wait for it")
	interrupt(t, "on every instance in ", "schema", "rollback", "--url", s.URL).wants(t, cli.ExitFailed, "`affinity schema status` shows when")
	affinity(t, "", "schema", "status", "--url", s.URL).wants(t, cli.ExitOK, "the log is read from narrow", "every instance follows in ")
	// Run again, the rollback would abandon the migration.
	affinity(t, "", "schema", "rollback", "--url", s.URL).wants(t, cli.ExitFailed, "The undone cutover has not propagated yet")
	settled(t, s)
	affinity(t, "", "schema", "rollback", "--no-wait", "--url", s.URL).wants(t, cli.ExitOK, "is planning, on every instance in ", "`affinity schema status` shows how far it is")
	affinity(t, "", "schema", "rollback", "--url", s.URL).wants(t, cli.ExitOK, "the migration to wide is abandoned: 21 rows")
}

// settled returns once every instance has the layout of the app.
func settled(t *testing.T, s *stack.Stack) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		st, err := s.Backends.Migrations.Status(t.Context(), "demo")
		must(t, err)
		if st.Propagation == 0 {
			return
		}
		<-poll.C
	}
}

// A waiting command fails when another operator takes the next step.
func TestSchemaTakenFurther(t *testing.T) {
	t.Parallel()
	s := startNarrow(t, time.Hour)
	affinity(t, "", "schema", "start", "--to", "wide", "--no-wait", "--url", s.URL).wants(t, cli.ExitOK, "on every instance in 7")
	ended := make(chan ran)
	go func() { ended <- affinity(t, "", "schema", "backfill", "--url", s.URL) }()
	// The other command waits once its job exists.
	err := cli.Poll(t.Context(), time.Minute, func() (bool, error) {
		return strings.Contains(affinity(t, "", "schema", "status", "--url", s.URL).out, "backfill-"), nil
	})
	must(t, err)
	affinity(t, "", "schema", "rollback", "--no-wait", "--url", s.URL).wants(t, cli.ExitOK, "is planning")
	r := <-ended
	r.wants(t, cli.ExitFailed, "another operator has taken the next step of this migration")
}

// Answers that the in-process engine does not give.
func TestSchemaAnswers(t *testing.T) {
	t.Parallel()
	answer := func(phase, job string) string {
		return fmt.Sprintf(`{"read":"narrow","written":["narrow","wide"],"encoding":"json","settlesInMs":0,"next":["backfill","rollback"],
			"move":{"id":"migration-1","from":"narrow","to":"wide","phase":%q,"startedAt":"2026-11-21T10:00:00.000Z","moving":true,"job":%s}}`, phase, job)
	}
	for name, c := range map[string]struct {
		args, answer string
		code         int
		wants        []string
	}{
		"many rows": {"backfill", answer("backfill", `{"id":"backfill-1","kind":"backfill","state":"done","rows":165474,"changed":165474,"faulty":0,
			"faults":[],"startedAt":"2026-11-21T10:00:00.000Z","finishedAt":"2026-11-21T10:00:12.500Z"}`), cli.ExitOK,
			[]string{"backfill-1 is done: 165,474 rows copied, 0 skipped in 12.5 s\n"}},
		"many faults": {"backfill", answer("backfill", `{"id":"backfill-1","kind":"backfill","state":"done","rows":9,"changed":7,"faulty":1002,
			"faults":["row a\u001b","row b"]}`), cli.ExitFailed, []string{"  row a\ufffd\n  row b\n  and 1,000 more\n", "7 rows copied, 1,002 skipped"}},
		"a job that failed": {"backfill", answer("backfill", `{"id":"backfill-1","kind":"backfill","state":"failed","error":"the disk is full"}`), cli.ExitFailed,
			[]string{"backfill-1 failed: the disk is full. Possible now: `affinity schema backfill` or `affinity schema rollback`"}},
		"a verification that broke": {"verify", answer("verify", `{"id":"verify-1","kind":"verify","state":"failed","error":"no table"}`), cli.ExitFailed,
			[]string{"verify-1 failed: no table"}},
		"a step without a migration": {"verify", `{"read":"narrow","written":["narrow"],"encoding":"json","move":null}`, cli.ExitFailed, []string{"names no migration"}},
		"no answer of an engine":     {"status", `{}`, cli.ExitFailed, []string{"is not what an Affinity engine sends"}},
		"a page":                     {"cutover", `<html>`, cli.ExitFailed, []string{"is not what an Affinity engine sends"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			affinity(t, "", "schema", c.args, "--url", fixedAnswer(t, 200, c.answer)).wants(t, c.code, c.wants...)
		})
	}
	affinity(t, "", "schema", "status", "--url", fixedAnswer(t, 403, `{"message":"no"}`)).wants(t, cli.ExitFailed, "--key a key that has the permission")
	affinity(t, "", "schema", "verify", "--url", fixedAnswer(t, 500, `{"message":"broken"}`)).wants(t, cli.ExitFailed, "500 broken")
}
