package main

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command/local"
)

// runDemo runs the demo on an engine of its own.
func runDemo(t *testing.T, args ...string) ran {
	t.Helper()
	args = append([]string{"demo", "--addr", "127.0.0.1:0"}, args...)
	return affinityWith(t, t.Context(), "", func(tl *program) { tl.start = local.StartStack }, args...)
}

func TestDemoTour(t *testing.T) {
	t.Parallel()
	r := runDemo(t, "--tour", "--once")
	r.wants(t, cli.ExitOK, "ready http://127.0.0.1:", "days of history", "live: 84 events", "runs a lot, loves Stridewell", "strategy change:",
		"strategy version 1", "strategy version 2")
	if strings.Contains(r.out, "curl") {
		t.Errorf("it proposes requests to an engine that has ended:\n%s", r.out)
	}
	if strings.Contains(r.out, "\x1b") {
		t.Error("printed colors although stdout is not a terminal")
	}
	r.wants(t, cli.ExitOK, "one page, ordered for each of the two by POST /1/rank", "popular")
	_, pages, _ := strings.Cut(r.out, "one page, ordered")
	var firsts []string
	for line := range strings.Lines(pages) {
		if first, ok := strings.CutPrefix(line, "  1   Northwave"); ok { // what the page has first
			firsts = append(firsts, first)
		}
	}
	if len(firsts) != 2 || firsts[0] == firsts[1] || !strings.Contains(firsts[0], "Stridewell") {
		t.Errorf("the first products of the two are %q", firsts)
	}
	checkSearch(t, r.out)
	checkEvening(t, r.out)
	before, after, _ := strings.Cut(r.out, "strategy change:")
	tops := func(text string) (tops []string) {
		lines := strings.Split(text, "\n")
		for i, line := range lines[:len(lines)-1] {
			if strings.Contains(line, "strategy version") {
				tops = append(tops, strings.Fields(lines[i+1])[0])
			}
		}
		return tops
	}
	if got := strings.Join(tops(before), " "); got != "categories.lvl0:Running categories.lvl0:Sneakers" {
		t.Errorf("the strongest affinities before the change are %s", got)
	}
	if got := tops(after); len(got) != 2 || got[0] != "brand:Stridewell" {
		t.Errorf("the strongest affinities after the change are %s", got)
	}
}

// checkEvening checks that the sign-in puts what the phone has liked first, and that the unlink gives the page of before.
func checkEvening(t *testing.T, out string) {
	t.Helper()
	_, out, _ = strings.Cut(out, "the evening kept:")
	lines := map[string]string{}
	for _, when := range []string{"before", "signed in", "unlinked"} {
		_, line, _ := strings.Cut(out, "  "+when)
		line, _, _ = strings.Cut(line, "\n")
		lines[when] = strings.TrimSpace(line)
	}
	if !strings.Contains(lines["before"], "0  Cairn") || !strings.Contains(lines["signed in"], "0  Ember & Oak") || lines["unlinked"] != lines["before"] {
		t.Errorf("the page of the evening: %q", lines)
	}
}

// lineAt passes on what is printed, and closes a channel once a text is.
type lineAt struct {
	io.Writer
	text    string
	printed chan struct{}
}

func (l lineAt) Write(p []byte) (int, error) {
	n, err := l.Writer.Write(p)
	if bytes.Contains(p, []byte(l.text)) {
		close(l.printed)
	}
	return n, err
}

// The demo ends in half a screen of what to click and to type, at an engine for which all of
// it works, and in which there is something to see.
func TestDemoGoesOn(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := lineAt{&output{}, "until Ctrl-C", make(chan struct{})}
	ended := make(chan ran)
	var problems output
	go func() {
		ended <- affinityWith(t, ctx, "", func(tl *program) { tl.Out, tl.Err, tl.start = out, &problems, local.StartStack },
			"demo", "--addr", "127.0.0.1:0")
	}()
	select {
	case <-out.printed:
	case r := <-ended:
		t.Fatalf("the demo ended: %+v", r)
	}
	text := out.Writer.(*output).String()
	if lines := strings.Count(text, "\n"); lines > 22 { // and two lines of problems that are none
		t.Errorf("it prints %d lines, want at most 22:\n%s", lines, text)
	}
	_, url, _ := strings.Cut(text, "ready ")
	url, _, _ = strings.Cut(url, "\n")
	if !strings.Contains(text, "export AFFINITY_URL="+url+" AFFINITY_APP=demo AFFINITY_KEY='demokey'\n") {
		t.Errorf("it does not name the engine at %s:\n%s", url, text)
	}
	here := []string{"--url", url}
	waitFor(t, "the backtest", func() bool {
		return strings.Contains(affinity(t, "", append([]string{"backtest", "list"}, here...)...).out, "done")
	})
	waitFor(t, "the lists of segments", func() bool {
		return strings.Contains(affinity(t, "", append([]string{"segment", "list", "--json"}, here...)...).out, `"state":"done"`)
	})
	typed := 0
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "go run ./scripts/")
		if args, ok := strings.CutPrefix(line, "affinity "); ok && !strings.HasPrefix(args, "demo") {
			typed++
			words := append(shellWords(strings.Replace(args, "tuned.json", t.TempDir()+"/tuned.json", 1)), here...)
			affinity(t, "", words...).wants(t, cli.ExitOK)
		}
		if strings.HasPrefix(line, "curl ") {
			curl(t, line)
		}
	}
	if typed != 5 {
		t.Errorf("it proposes %d commands, want 5:\n%s", typed, text)
	}
	stop()
	if r := <-ended; r.code != cli.ExitOK {
		t.Errorf("the demo ends with %d: %s", r.code, problems.String())
	}
}

// shellWords are the words of a command line, of which some are in single quotes.
func shellWords(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// curl runs a request as a person types it, where the machine can.
func curl(t *testing.T, line string) {
	t.Helper()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Logf("%s is missing, so the demo's requests are not tested", tool)
			return
		}
	}
	if strings.Contains(line, "/profiles/") {
		waitFor(t, "the profile", func() bool {
			return exec.Command("bash", "-c", strings.Replace(line, "curl ", "curl -sf ", 1)).Run() == nil
		})
	} else if said, err := exec.Command("bash", "-c", strings.Replace(line, "curl ", "curl -sf ", 1)).CombinedOutput(); err != nil {
		t.Errorf("%s: %v %s", line, err, said)
	}
}

// waitFor waits until something that the engine does is done.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%s does not come", what)
		}
	}
}

// checkSearch compares the orders of the demo's search with what the two like.
func checkSearch(t *testing.T, out string) {
	t.Helper()
	_, search, _ := strings.Cut(out, "one search for")
	for line := range strings.Lines(search) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{`{"filter":{"term":{"brand":"Stridewell"}},"weight":`, "sort_by=_text_match(buckets:", "(brand:=`Vandal`"} {
		if !strings.Contains(search, want) {
			t.Errorf("the search lacks %s", want)
		}
	}
	var firsts []string
	for line := range strings.Lines(search) {
		if first, ok := strings.CutPrefix(line, "  1  "); ok {
			firsts = append(firsts, strings.Join(strings.Fields(first), " "))
		}
	}
	const vandal, stridewell = "Vandal Yellow Retro Runner", "Stridewell Yellow Retro Runner"
	want := []string{vandal + " " + stridewell + " Stridewell Yellow Shorts", vandal + " " + vandal + " Littlebee Yellow Backpack"}
	if !slices.Equal(firsts, want) {
		t.Errorf("the first hits by text, elasticsearch and typesense are %q, want %q\n%s", firsts, want, search)
	}
}

// The demo of an experiment says a truth that its report holds, twice the same.
func TestDemoExperiment(t *testing.T) {
	t.Parallel()
	args := []string{"experiment", "--once", "--people", "150", "--days", "2"}
	first := runDemo(t, args...)
	first.wants(t, cli.ExitOK, "150 people visit a simulated shop for 14 days", "The truth: the order of the engine makes them click, order and pay ", " % more.",
		"METRIC       REPORTED", "clicks ", "The report of personalization: Arm personalized")
	if again := runDemo(t, args...); withoutReady(again.out) != withoutReady(first.out) {
		t.Errorf("the same demo prints\n%s\nthen\n%s", first.out, again.out)
	}
	runDemo(t, "experiment", "--people", "1").wants(t, cli.ExitUsage, "--people must be 100 to 100000")
}

func withoutReady(out string) string {
	_, rest, _ := strings.Cut(out, "\n")
	return rest
}

// A second demo with a data folder shows the shop that the first one has left in it.
func TestDemoWithData(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	runDemo(t, "--once", "--data", data).wants(t, cli.ExitOK, "all data is kept in "+data, "days of history")
	again := runDemo(t, "--tour", "--once", "--data", data)
	again.wants(t, cli.ExitOK, "nothing is imported", "runs a lot, loves Stridewell", "strategy version 2", "one page, ordered")
	if strings.Contains(again.out, "days of history") {
		t.Error("the second demo imports the shop again")
	}
}

func TestDemoOfAnEngineThatRefuses(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	engine.failures = append(engine.failures, refusing(422))
	closed := false
	affinityWith(t, t.Context(), "", func(tl *program) {
		tl.start = func(context.Context, local.Options) (local.RunningStack, error) {
			return runningEngine{engine, &closed}, nil
		}
	}, "demo").wants(t, cli.ExitFailed, "set the demo's strategy")
	if !closed {
		t.Error("the stack was not closed")
	}
}
