package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command/local"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// lentStack is a stack that goes on when the command that was given it ends.
type lentStack struct{ engineStack }

func (lentStack) Close() error { return nil }

// The lines that `up` prints lead to a profile with an affinity and to an order that follows it.
func TestPrintedLinesLeadToAnOrder(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is missing, so the printed lines cannot be run")
	}
	s := startEngine(t, stack.Options{})
	ctx, stop := context.WithCancel(t.Context())
	up := affinityWith(t, ctx, "", func(p *program) {
		p.start = func(context.Context, local.Options) (local.RunningStack, error) {
			stop() // up ends when it has printed the lines
			return lentStack{engineStack{s}}, nil
		}
	}, "up")
	up.wants(t, cli.ExitOK)
	ordered := ""
	for _, line := range regexp.MustCompile(`(?m)^(three products|an event|a strategy|a profile|an order): +(.*(?:\n  -d .*)?)$`).
		FindAllStringSubmatch(up.err, -1) {
		if strings.HasPrefix(line[2], "curl ") {
			out, err := exec.CommandContext(t.Context(), "bash", "-c", strings.Replace(line[2], "curl ", "curl -sSf ", 1)).CombinedOutput()
			if err != nil {
				t.Fatalf("%s\n%s%v", line[2], out, err)
			}
			continue
		}
		_, args, _ := strings.Cut(line[2], "affinity ")
		r := affinity(t, "", strings.Fields(args)...)
		r.wants(t, cli.ExitOK)
		switch line[1] {
		case "a profile":
			r.wants(t, cli.ExitOK, "brand:Acme", "color:blue")
		case "an order":
			ordered = r.out
		}
	}
	if cap, tee, mug := strings.Index(ordered, "cap"), strings.Index(ordered, "tee"), strings.Index(ordered, "mug"); cap < 0 || cap > tee || tee > mug {
		t.Errorf("the order:\n%s\nprinted:\n%s", ordered, up.err)
	}
}

func TestSuggest(t *testing.T) {
	s := startEngine(t, stack.Options{})
	url := []string{"--url", s.URL}
	affinity(t, "", append([]string{"strategy", "suggest", "--set", "--out", "x"}, url...)...).wants(t, cli.ExitUsage, "leave out --out")
	affinity(t, "", append([]string{"strategy", "suggest", "--days", "31"}, url...)...).wants(t, cli.ExitUsage, "--days")

	var objects, events []string
	for i := range 60 {
		objects = append(objects, fmt.Sprintf(`{"objectID":"o%d","name":"Thing %d","brand":"b%d","price":%d.5}`, i, i, i%4, i))
		events = append(events, fmt.Sprintf(`{"eventType":"view","eventName":"Seen","userToken":"u%d","timestamp":%d,"objectIDs":["o%d"]}`, i%5, 1_790_000_000_000+i, i))
	}
	events = append(events, `{"eventType":"conversion","eventName":"Order Cancelled","userToken":"u1","timestamp":1790000000001,"objectIDs":["o1"]}`)
	files := []string{"--objects", file(t, "o", objects...), file(t, "e", events...)}
	affinity(t, "", append(append([]string{"import"}, files...), url...)...).
		wants(t, cli.ExitOK, "the app has no strategy, so its profiles are empty: `affinity strategy suggest --set`")
	affinity(t, "", append(append([]string{"import", "--suggest"}, files...), url...)...).wants(t, cli.ExitOK, "the strategy is set",
		"60 values on 60 objects: by its name, it says which object it is", "users turn away")
	affinity(t, "", append([]string{"strategy", "get"}, url...)...).wants(t, cli.ExitOK, `"Seen"`, `"brand"`, `"price"`)
	affinity(t, "", append([]string{"index", "show", "products"}, url...)...).wants(t, cli.ExitOK, "price")
	affinity(t, "", append(append([]string{"import", "--suggest"}, files...), url...)...).wants(t, cli.ExitOK, "--suggest leaves it as it is")

	out := filepath.Join(t.TempDir(), "s.json")
	affinity(t, "", append([]string{"strategy", "suggest", "--out", out}, url...)...).wants(t, cli.ExitOK, "60 objects")
	if got := readStrategyFile(t, out); got.EventsScoring[0].EventName != "Seen" || got.FacetScore("name") != 0 || got.FacetScore("brand") == 0 {
		t.Errorf("suggested %+v", got)
	}
	var answer api.StrategySuggestion
	must(t, json.Unmarshal([]byte(affinity(t, "", append([]string{"strategy", "suggest", "--json"}, url...)...).out), &answer))
	if answer.Days != api.MaxSeenDays || answer.Objects != 60 || len(answer.Reasons) != 5 {
		t.Errorf("answered %+v", answer)
	}
}

// An app that has seen nothing says so.
func TestSuggestWithoutEvents(t *testing.T) {
	s := startEngine(t, stack.Options{})
	c, err := client.New(client.Config{URL: s.URL, App: "demo", Key: stack.DemoKey, Retry: client.NoRetry})
	must(t, err)
	_, err = c.Strategies().Suggestion(t.Context(), 0)
	if err == nil || !strings.Contains(err.Error(), "no view, click or conversion has been seen") {
		t.Errorf("error %v", err)
	}
}

func TestImportFlagsOfSuggest(t *testing.T) {
	affinity(t, "", "import", "--suggest", "--check", "x").wants(t, cli.ExitUsage, "--suggest is not for")
}
