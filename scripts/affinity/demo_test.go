package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command/local"
	"github.com/affinityengine/affinity/shared/rank/boost"
)

func TestDemo(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	closed := false
	r := affinityWith(t, t.Context(), "", func(tl *program) {
		tl.start = func(context.Context, local.Options) (local.RunningStack, error) {
			return runningEngine{engine, &closed}, nil
		}
	}, "demo", "--once")
	r.wants(t, cli.ExitOK, "ready "+engine.URL, "days of history", "live: 84 events", "runs a lot, loves Stridewell", "strategy change:",
		"strategy version 1", "strategy version 2")
	if strings.Contains(r.out, "your turn") {
		t.Errorf("it proposes requests to an engine that has ended:\n%s", r.out)
	}
	if !closed {
		t.Error("the stack was not closed")
	}
	if strings.Contains(r.out, "\x1b") {
		t.Error("printed colors although stdout is not a terminal")
	}
	r.wants(t, cli.ExitOK, "one page, ordered for each of the two by POST /1/rank", "nothing speaks for it")
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

// stopAt cancels a context once a text is printed.
type stopAt struct {
	io.Writer
	text string
	stop context.CancelFunc
}

func (s stopAt) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(s.text)) {
		s.stop()
	}
	return s.Writer.Write(p)
}

// An engine that goes on proposes requests, until Ctrl-C.
func TestDemoGoesOn(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var printed output
	affinityWith(t, ctx, "", func(tl *program) {
		tl.Out, tl.start = stopAt{&printed, "serving on", stop}, local.StartStack
	}, "demo", "--addr", "127.0.0.1:0").wants(t, cli.ExitOK)
	for _, want := range []string{"your turn:  curl 'http://127.0.0.1:", "/1/profiles/you'"} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("%q is not in:\n%s", want, printed.String())
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
	want := []string{vandal + " " + stridewell + " " + stridewell, vandal + " " + vandal + " " + vandal}
	if !slices.Equal(firsts, want) {
		t.Errorf("the first hits by text, elasticsearch and typesense are %q, want %q\n%s", firsts, want, search)
	}
}

// boost renders a profile as the engine does.
func (e *fakeEngine) boost(w http.ResponseWriter, r *http.Request) {
	sums, _ := e.sums(r.Header.Get("X-Algolia-Usertoken"))
	query := r.URL.Query()
	limit, _ := strconv.Atoi(query.Get("limit"))
	request := boost.Request{Engine: query.Get("engine"), Impact: 50, Limit: limit}
	for filter, sum := range sums {
		facet, value, _ := strings.Cut(filter, ":")
		request.Affinities = append(request.Affinities, boost.Affinity{Facet: facet, Value: value, Score: sum})
	}
	rendered, err := boost.Render(request)
	if err != nil {
		refuse(w, 422, err.Error())
		return
	}
	answer(w, 200, map[string]any{"query": rendered.Query})
}

// A second demo with a data folder shows the shop that the first one has left in it.
func TestDemoWithData(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	demo := func() ran {
		return affinityWith(t, t.Context(), "", func(tl *program) { tl.start = local.StartStack }, "demo", "--once", "--addr", "127.0.0.1:0", "--data", data)
	}
	demo().wants(t, cli.ExitOK, "all data is kept in "+data, "days of history", "strategy version 2")
	again := demo()
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
