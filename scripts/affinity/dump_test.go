package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// dumpOf returns the lines of a dump that say what the app has, sorted.
func dumpOf(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	var lines []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, `{"exportedApp":`) && !strings.HasPrefix(line, `{"exportNext":`) {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// fill gives an app all that a dump has, and several pages of it.
func fill(t *testing.T, c *client.Client) {
	t.Helper()
	must := func(_ any, err error) {
		t.Helper()
		must(t, err)
	}
	ctx := t.Context()
	must(nil, c.Strategies().SetJSON(ctx, []byte(`{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":50},{"eventName":"Bought","eventType":"conversion","score":90}],`+
		`"facetsScoring":[{"facetName":"color","score":70},{"facetName":"price","score":30}],"personalizationImpact":50,"halfLives":[7]}`), client.SetOptions{}))
	must(c.Catalog().SetSettings(ctx, "shoes", api.Settings{AttributesForFaceting: []string{"color", "price"}, PrivateFacets: []string{"price"}}))
	must(c.Catalog().SetSettings(ctx, "empty", api.Settings{AttributesForFaceting: []string{"color"}}))
	must(c.Events().SetNames(ctx, api.TrackNames{Names: map[string]string{"Recipe Saved": "conversion"}}))
	must(c.Feeds().Set(ctx, "new", api.FeedRequest{Index: "shoes", Date: "at", Where: []api.FeedCondition{{"color:Red"}}}))
	must(c.Segments().Save(ctx, "reds", api.SegmentCondition{Filter: "color:Red", Above: 5}, false))
	var actions []api.BatchAction
	for i := range 3 {
		actions = append(actions, api.BatchAction{Action: api.ActionAddObject,
			Body: fmt.Appendf(nil, `{"objectID":"s/%d,","color":"<Red%d>","price":%d,"at":"2026-11-21T10:00:00Z"}`, i, i, 10*i)})
	}
	must(c.Catalog().Batch(ctx, "shoes", actions...))
	var lines bytes.Buffer
	for i := range 9_000 {
		fmt.Fprintf(&lines, `{"eventType":%q,"eventName":%q,"userToken":"u%d","index":"shoes","objectIDs":["s/%d,"],"timestamp":%d,"unread":%q}`+"\n",
			[]string{"view", "conversion"}[i%2], []string{"Seen", "Bought"}[i%2], i%7, i%4, time.Now().Add(-time.Duration(i)*time.Minute).UnixMilli(), strings.Repeat("x", 1_000))
		if lines.Len() > 4_000_000 {
			must(c.Events().Import(ctx, "", lines.Bytes()))
			lines.Reset()
		}
	}
	must(c.Events().Import(ctx, "", lines.Bytes()))
	must(c.Profiles().Delete(ctx, "u1"))
	must(c.Profiles().Delete(ctx, "never-seen"))
	must(c.Profiles().OptOut(ctx, "u2", api.OptOutRequest{EventTypes: []event.Type{event.Conversion}}))
	must(c.Profiles().OptOut(ctx, "u3", api.OptOutRequest{}))
	must(c.Events().Import(ctx, "", fmt.Appendf(nil, `{"eventType":"view","eventName":"Seen","userToken":"u2","index":"shoes","objectIDs":["s/1,"]}`)))
}

// A restored app has what the dump has, and so has one that is restored again, or from a
// file that was cut off and gone on with.
func TestDumpAndRestore(t *testing.T) {
	t.Parallel()
	from, to := startEngine(t, stack.Options{RetentionDays: 90}), startEngine(t, stack.Options{RetentionDays: 90})
	source, target := clientOf(t, from.URL), clientOf(t, to.URL)
	fill(t, source)
	folder := t.TempDir()
	first, second := filepath.Join(folder, "first.ndjson"), filepath.Join(folder, "second.ndjson")
	affinity(t, "", "dump", "--url", from.URL, "--out", first).wants(t, cli.ExitOK, "complete: 3 objects and 5143 events of demo")
	want := dumpOf(t, first)
	for _, kind := range []string{`{"exportedStrategy":`, `{"exportedSettings":{"index":"empty"`, `"privateFacets":["price"]`, `{"exportedFeed":{"name":"new"`,
		`{"exportedSegment":{"name":"reds"`, `{"exportedObject":{"index":"shoes","object":{"objectID":"s/2,","color":"<Red2>"`,
		`{"exportedDeletion":{"userToken":"never-seen"`, `"optedOut":["conversion"]}}`, `"optedOut":["view","click","conversion"]}}`} {
		if !slices.ContainsFunc(want, func(line string) bool { return strings.Contains(line, kind) }) {
			t.Errorf("the dump has no line with %s", kind)
		}
	}
	for _, text := range []string{`"userToken":"u1","index"`, `"userToken":"u3","index"`} { // events of deleted users
		if slices.ContainsFunc(want, func(line string) bool { return strings.Contains(line, text) }) {
			t.Errorf("the dump has a line with %s", text)
		}
	}
	const restored = "2 index settings, 1 feed, 1 segment, 3 objects, 5143 events (%d were in the log), 8 deletion or opt-out lines"
	affinity(t, "", "restore", "--url", to.URL, first).wants(t, cli.ExitOK, fmt.Sprintf(restored, 0))
	affinity(t, "", "restore", "--url", to.URL, first).wants(t, cli.ExitOK, fmt.Sprintf(restored, 5143))
	affinity(t, "", "dump", "--url", to.URL, "--out", second).wants(t, cli.ExitOK)
	if got := dumpOf(t, second); !slices.Equal(got, want) {
		t.Errorf("dumped again: %d lines, want %d", len(got), len(want))
	}
	for i := range 7 {
		user := fmt.Sprintf("u%d", i)
		x, errX := source.Profiles().Get(t.Context(), user, api.ProfileQuery{})
		y, errY := target.Profiles().Get(t.Context(), user, api.ProfileQuery{})
		if (errX == nil) != (errY == nil) || (errX == nil) != (i != 1 && i != 3) || x.Total != y.Total || !x.LastEventAt.Equal(y.LastEventAt.Time) {
			t.Errorf("%s: %+v, %v; restored %+v, %v", user, x, errX, y, errY)
		}
	}
	// A restored opt-out holds.
	answer, err := target.Events().Import(t.Context(), "", []byte(`{"eventType":"conversion","eventName":"Bought","userToken":"u2","index":"shoes","objectIDs":["s/1,"]}`))
	if err != nil || answer.OptedOut != 1 {
		t.Errorf("a conversion of a user who has opted out of them: %+v, %v", answer, err)
	}
	whole, err := os.ReadFile(first)
	must(t, err)
	end := bytes.LastIndex(whole, []byte(`{"exportNext":`))
	for _, cut := range []int{10, len(whole) / 3, end + 5, end - 1, len(whole) - 5} {
		must(t, os.WriteFile(second, whole[:cut], 0o600))
		affinity(t, "", "restore", "--url", to.URL, second).wants(t, cli.ExitFailed)
		affinity(t, "", "dump", "--url", from.URL, "--out", second).wants(t, cli.ExitOK, "complete: 3 objects and 5143 events")
		if got := dumpOf(t, second); !slices.Equal(got, want) {
			t.Errorf("cut at %d and gone on with: %d lines, want %d", cut, len(got), len(want))
		}
	}
	affinity(t, "", "dump", "--url", from.URL, "--out", second).wants(t, cli.ExitFailed, "is a complete dump")
}

// clientOf returns a client of an engine as the app demo.
func clientOf(t *testing.T, url string) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{URL: url, App: "demo", Key: "demokey"})
	must(t, err)
	return c
}

// The kept reports of experiments come back in another engine, word for word.
func TestDumpAndRestoreOfReports(t *testing.T) {
	t.Parallel()
	from, to := startEngine(t, stack.Options{}), startEngine(t, stack.Options{})
	kept := config.KeptReport{Experiment: "holdout", Definition: "d1", Job: "report-1", AsOf: time.Now().UTC().Truncate(time.Millisecond),
		Body: `{"metric":"clicks","reports":{"clicks":{"from":"2026-11-01","to":"2026-11-30","words":"more"}},"exposed":{"clicks":{"words":"none"}}}`}
	for _, month := range []string{"", "2026-11"} {
		kept.Month = month
		must(t, config.ReportsOf(from.Backends.Config).Keep(t.Context(), "demo", kept))
	}
	out := filepath.Join(t.TempDir(), "shop.dump")
	affinity(t, "", "dump", "--out", out, "--url", from.URL).wants(t, cli.ExitOK)
	affinity(t, "", "restore", out, "--url", to.URL).wants(t, cli.ExitOK, "restored 2 reports of experiments")
	got, err := config.ReportsOf(to.Backends.Config).All(t.Context(), "demo")
	must(t, err)
	want, err := config.ReportsOf(from.Backends.Config).All(t.Context(), "demo")
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 2 {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
	affinity(t, "", "experiment", "report", "holdout", "--month", "2026-11", "--json", "--url", to.URL).wants(t, cli.ExitOK, `"words": "more"`)
}

func TestDumpRefusesOtherFiles(t *testing.T) {
	s := startEngine(t, stack.Options{})
	for text, want := range map[string]string{
		"notes of mine\n":                        "exists and is no dump",
		"notes":                                  "exists and is no dump",
		`{"eventType":"view"}` + "\n":            "exists and is no dump",
		`{"exportedApp":{"app":"other"}}` + "\n": "is a dump of the app other, not of demo",
		`{"exportedApp":{"app":"demo"}}` + "\n" + `{"exportEnd":{}}` + "\n": "is a complete dump",
	} {
		path := file(t, "dump.ndjson", text)
		affinity(t, "", "dump", "--url", s.URL, "--out", path).wants(t, cli.ExitFailed, want)
		if left, err := os.ReadFile(path); strings.TrimSpace(string(left)) != strings.TrimSpace(text) || err != nil {
			t.Errorf("%q became %q, %v", text, left, err)
		}
	}
	affinity(t, "", "dump", "extra", "--url", s.URL).wants(t, cli.ExitUsage)
}

func TestRestoreNamesWhatIsWrong(t *testing.T) {
	s := startEngine(t, stack.Options{})
	const app, end = `{"exportedApp":{"app":"shop"}}` + "\n", `{"exportEnd":{"events":0,"faults":0}}` + "\n"
	for text, c := range map[string]struct {
		code int
		want string
	}{
		"":                 {cli.ExitFailed, "holds nothing of a dump"},
		app:                {cli.ExitFailed, "is no complete dump"},
		app + "{}\n" + end: {command.ExitLines, ":2: the line is none of a dump"},
		app + "x\n" + end:  {command.ExitLines, ":2: the line is none of a dump"},
		app + `{"exportedDeletion":{"userToken":"a,b","deletedUntil":"2026-11-21T10:00:00.000Z","receivedUntil":"2026-11-21T10:00:00.000Z"}}` + "\n" + end: {
			command.ExitLines, ":2: The userToken of an exported deletion is none"},
		app + `{"exportedDeletion":{"userToken":"a","deletedUntil":"2126-11-21T10:00:00.000Z","receivedUntil":"2126-11-21T10:00:00.000Z"}}` + "\n" + end: {
			command.ExitLines, ":2: An exported deletion must have times from 1970 until now"},
		app + `{"exportedDeletion":{"userToken":"a","deletedUntil":"2026-11-21T10:00:00.000Z","receivedUntil":"2026-11-21T10:00:00.000Z"}}` + "\n" +
			`{"exportedObject":{"index":"i","object":{"objectID":"1"}}}` + "\n" + end: {command.ExitLines, ":3: settings and objects must stand before all events"},
		app + `{"exportedFeed":{"name":"new","feed":{"index":""}}}` + "\n" + end: {cli.ExitFailed, "restore line 2 of "},
	} {
		affinity(t, "", "restore", "--url", s.URL, file(t, "dump.ndjson", text)).wants(t, c.code, c.want)
	}
	strategy := func(score int) string {
		return file(t, "dump.ndjson", app+fmt.Sprintf(`{"exportedStrategy":{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":%d}],"facetsScoring":[{"facetName":"a","score":1}],"personalizationImpact":50}}`, score)+"\n"+end)
	}
	affinity(t, "", "restore", "--url", s.URL, strategy(1)).wants(t, cli.ExitOK)
	affinity(t, "", "restore", "--url", s.URL, strategy(1)).wants(t, cli.ExitOK)
	affinity(t, "", "restore", "--url", s.URL, strategy(2)).wants(t, cli.ExitFailed, "the app has another strategy: --replace")
	affinity(t, "", "restore", "--url", s.URL, "--replace", strategy(2)).wants(t, cli.ExitOK)
	affinity(t, "", "restore", "--url", s.URL, "--from-line", "0", "x").wants(t, cli.ExitUsage, "--from-line 0")
	affinity(t, "", "import", "--url", s.URL, strategy(1)).wants(t, command.ExitLines, "`affinity restore` restores it")
}

// An interrupted restore says where to go on, and going on there restores the rest.
func TestInterruptedRestore(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{})
	var text strings.Builder
	text.WriteString(`{"exportedApp":{"app":"shop"}}` + "\n")
	now := time.Now().UnixMilli()
	for i := range 17_000 { // of few users, each at a time of its own
		fmt.Fprintf(&text, `{"exportedEvent":{"time":%d,"id":"AAAAAAAAAAA","receivedAt":"2026-11-21T10:00:00.000Z","filters":[["a","b",1]],"event":{"eventType":"view","eventName":"Seen","userToken":"u%d","index":"i","filters":["a:b"]}}}`+"\n",
			now-int64(i), i%100)
	}
	text.WriteString(`{"exportEnd":{"events":17000,"faults":0}}` + "\n")
	path := file(t, "dump.ndjson", text.String())
	target, err := url.Parse(s.URL)
	must(t, err)
	through := httputil.NewSingleHostReverseProxy(target)
	through.ErrorLog = log.New(io.Discard, "", 0) // of requests that the command gives up
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength < 300_000 { // the last chunk, of 1,000 lines
			refuse(w, http.StatusForbidden, "no more")
			return
		}
		through.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	r := affinity(t, "", "restore", "--url", proxy.URL, path)
	r.wants(t, cli.ExitFailed, "no more", "run the same command again with --from-line ")
	_, line, _ := strings.Cut(r.err, "--from-line ")
	line, _, _ = strings.Cut(line, "\n")
	from, err := strconv.Atoi(line)
	// The last chunk is only sent once all but three before it are answered.
	if err != nil || from < 2+5*2000 || from > 2+8*2000 {
		t.Fatalf("go on with line %q, %v", line, err)
	}
	affinity(t, "", "restore", "--url", s.URL, "--from-line", strconv.Itoa(from), path).wants(t, cli.ExitOK, fmt.Sprintf("%d events (", 17_002-from))
	affinity(t, "", "restore", "--url", s.URL, path).wants(t, cli.ExitOK, "17000 events (17000 were in the log)")
}
