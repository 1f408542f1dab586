package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/consent"
)

var dumpedPurposes = []consent.Purpose{
	{Name: "old"},
	{Name: "ads", Types: []event.Type{event.View}, Surfaces: []consent.Surface{consent.Export}},
	{Name: "personal", Default: true, Types: []event.Type{event.Conversion}, Surfaces: []consent.Surface{consent.Rank}},
}

// consenting starts an engine whose app has purposes.
func consenting(t *testing.T, purposes ...consent.Purpose) *stack.Stack {
	t.Helper()
	s := startEngine(t, stack.Options{RetentionDays: 90})
	_, err := s.Backends.CachedConfig.SetPurposes(t.Context(), "demo", purposes)
	must(t, err)
	return s
}

// past waits until the clock is behind the last change of what a user grants.
func past(t *testing.T, c api.Consents) {
	t.Helper()
	for _, p := range c.Purposes {
		for p.Since != nil && time.Since(p.Since.Time) < 10*time.Millisecond {
			time.Sleep(time.Millisecond)
		}
	}
}

// fillConsents gives an app users who have granted and withdrawn, with events of before and after.
func fillConsents(t *testing.T, c *client.Client) {
	t.Helper()
	ctx := t.Context()
	must(t, c.Strategies().SetJSON(ctx, []byte(`{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":50},{"eventName":"Bought","eventType":"conversion","score":50}],`+
		`"facetsScoring":[{"facetName":"color","score":70}],"personalizationImpact":50}`), client.SetOptions{}))
	act := func(color string, users ...string) {
		var lines bytes.Buffer
		begin := time.Now().UnixMilli()
		for i, user := range users {
			for j, kind := range []string{`"view","eventName":"Seen"`, `"conversion","eventName":"Bought"`} {
				fmt.Fprintf(&lines, `{"eventType":%s,"userToken":%q,"index":"i","filters":["color:%s"],"timestamp":%d}`+"\n", kind, user, color, begin+int64(2*i+j))
			}
		}
		_, err := c.Events().Import(ctx, "", lines.Bytes())
		must(t, err)
	}
	said := func(user string, grants map[string]bool) {
		answer, err := c.Profiles().SetConsents(ctx, user, grants)
		must(t, err)
		past(t, answer)
	}
	act("before", "ann", "bob", "cat", "dan", "eve")
	for _, user := range []string{"ann", "cat", "dan"} {
		said(user, map[string]bool{"ads": true})
	}
	said("bob", map[string]bool{"personal": false})
	said("eve", map[string]bool{"personal": false})
	said("eve", map[string]bool{"personal": true})
	act("after", "ann", "bob", "cat", "dan", "eve")
	said("dan", map[string]bool{"ads": false})
	_, err := c.Profiles().ForgetConsents(ctx, "cat")
	must(t, err)
}

// A restored app has what users have said, and counts the same events.
func TestDumpAndRestoreConsents(t *testing.T) {
	t.Parallel()
	from := consenting(t, dumpedPurposes...)
	source := clientOf(t, from.URL)
	fillConsents(t, source)
	_, err := from.Backends.CachedConfig.SetPurposes(t.Context(), "demo", dumpedPurposes[1:]) // numbers need not be equal
	must(t, err)
	folder := t.TempDir()
	first, second := filepath.Join(folder, "first.ndjson"), filepath.Join(folder, "second.ndjson")
	affinity(t, "", "dump", "--url", from.URL, "--out", first).wants(t, cli.ExitOK, "complete: ")
	want := dumpOf(t, first)
	for _, kind := range []string{`{"exportedConsents":{"userToken":"ann","purposes":[{"name":"ads","granted":true,"askedAt":"`, `{"exportedConsents":{"userToken":"cat","purposes":[{"name":"ads","askedAt":"`} {
		if !slices.ContainsFunc(want, func(line string) bool { return strings.HasPrefix(line, kind) }) {
			t.Errorf("the dump has no line with %s", kind)
		}
	}
	for _, text := range []string{`"userToken":"bob","index"`, `"eventType":"view","eventName":"Seen","userToken":"dan"`} {
		if slices.ContainsFunc(want, func(line string) bool { return strings.Contains(line, text) }) {
			t.Errorf("the dump has a line with %s", text)
		}
	}

	without := startEngine(t, stack.Options{})
	affinity(t, "", "restore", "--url", without.URL, first).wants(t, cli.ExitFailed, `the app demo has no purpose "ads"`, "affinity app purposes demo --file FILE",
		`[{"name":"ads","default":false,"types":["view"],"surfaces":["export"]},{"name":"personal",`)

	to := consenting(t, dumpedPurposes[2], dumpedPurposes[1])
	target := clientOf(t, to.URL)
	for range 2 {
		affinity(t, "", "restore", "--url", to.URL, first).wants(t, cli.ExitOK, "restored 10 lines of consents")
		affinity(t, "", "dump", "--url", to.URL, "--out", second).wants(t, cli.ExitOK)
		got := dumpOf(t, second)
		for i := range got {
			got[i] = inOrder(got[i])
		}
		if !slices.Equal(got, want) {
			t.Errorf("dumped again:\n%s\nwant\n%s", strings.Join(got, ""), strings.Join(want, ""))
		}
		must(t, os.Remove(second))
	}
	// Ann's one view counts since they granted ads.
	if !slices.ContainsFunc(want, func(l string) bool { return strings.Contains(l, `"view","eventName":"Seen","userToken":"ann"`) }) {
		t.Errorf("the dump lacks a view of ann: %s", want)
	}
	for _, user := range []string{"ann", "bob", "cat", "dan", "eve"} {
		x, errX := source.Profiles().Get(t.Context(), user, api.ProfileQuery{})
		y, errY := target.Profiles().Get(t.Context(), user, api.ProfileQuery{})
		if (errX == nil) != (errY == nil) || (errX == nil) != (user != "bob") || fmt.Sprint(x.Affinities) != fmt.Sprint(y.Affinities) {
			t.Errorf("%s: %+v, %v; restored %+v, %v", user, x, errX, y, errY)
		}
	}
}

// inOrder returns a line of consents with the purposes in the order of the app that was dumped first.
func inOrder(line string) string {
	before, list, found := strings.Cut(line, `"purposes":[{`)
	if !found {
		return line
	}
	list, _, _ = strings.Cut(list, "}]")
	purposes := strings.Split(list, "},{")
	slices.Sort(purposes)
	return before + `"purposes":[{` + strings.Join(purposes, "},{") + "}]}}\n"
}

func TestRestoreRefusesConsents(t *testing.T) {
	t.Parallel()
	s := consenting(t, dumpedPurposes...)
	const app, end, at = `{"exportedApp":{"app":"demo"}}` + "\n", `{"exportEnd":{"events":0,"faults":0}}` + "\n", `"askedAt":"2026-11-21T10:00:00.000Z"`
	for text, want := range map[string]string{
		`{"userToken":"a,b","purposes":[{"name":"ads",` + at + `}]}`:                                        ":2: The userToken of exported consents is none",
		`{"userToken":"a","purposes":[{"name":"mail",` + at + `}]}`:                                         `:2: The app has no purpose \"mail\"`,
		`{"userToken":"a","purposes":[{"name":"ads",` + at + `},{"name":"ads",` + at + `}]}`:                ":2: Exported consents must name a purpose once",
		`{"userToken":"a","purposes":[{"name":"ads",` + at + `,"since":"2026-11-21T10:00:00.000Z"}]}`:       ":2: Exported consents must have times from 1970",
		`{"userToken":"a","purposes":[{"name":"ads","granted":true,"askedAt":"2126-11-21T10:00:00.000Z"}]}`: ":2: Exported consents must have times from 1970",
		`{"userToken":"a","purposes":[{"name":"ads","granted":"yes",` + at + `}]}`:                          ":2: The line of an export cannot be read",
		`{"userToken":"a","purposes":[]}` + "}\n" + `{"exportedConsents":{"userToken":"","purposes":[]}`:    ":3: The userToken of exported consents is none",
	} {
		path := file(t, "dump.ndjson", app+`{"exportedConsents":`+text+"}\n"+end)
		affinity(t, "", "restore", "--url", s.URL, path).wants(t, command.ExitLines, strings.ReplaceAll(want, `\"`, `"`))
	}
	line := `{"exportedConsents":{"userToken":"a","purposes":[{"name":"ads",` + at + `}]}}` + "\n"
	affinity(t, "", "import", "--url", s.URL, file(t, "events.ndjson", line)).wants(t, command.ExitLines, "Consents can only be imported with receipts=kept")
}
