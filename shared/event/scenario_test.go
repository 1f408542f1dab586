package event_test

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/affinityengine/affinity/shared/event"
)

// TestScenarios runs the dialogues in testdata. Commands:
//
//	batch [now=RFC3339] [index=I] [ordinal=N]   the body of POST /1/events
//	event [index=I] [ordinal=N] [history]       events alone, one a line, of any age
//	filter                                      filters, one a line
//
// In their input <S*N> stands for N times S, and <S*N,> for the same with
// commas between.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			input := repeat(t, d.Input)
			switch d.Cmd {
			case "batch":
				rules := scenarioRules(t, d)
				rules.MaxAge = event.MaxEventAge
				events, err := event.DecodeBatch([]byte(input), rules)
				return printBatch(t, events, err)
			case "event":
				return eachLine(input, func(line string) string {
					e, err := event.Decode([]byte(line), scenarioRules(t, d))
					return printBatch(t, []event.Event{e}, err)
				})
			case "filter":
				return eachLine(input, printFilter)
			default:
				t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
				return ""
			}
		})
	})
}

func scenarioRules(t *testing.T, d *datadriven.TestData) event.Rules {
	now := "2026-11-20T12:00:00Z"
	rules := event.Rules{History: d.HasArg("history")}
	d.MaybeScanArgs(t, "now", &now)
	d.MaybeScanArgs(t, "index", &rules.Index)
	d.MaybeScanArgs(t, "ordinal", &rules.Ordinal)
	var err error
	if rules.Now, err = time.Parse(time.RFC3339, now); err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	return rules
}

var repetition = regexp.MustCompile(`<([^<>]+)\*(\d+)(,?)>`)

func repeat(t *testing.T, s string) string {
	return repetition.ReplaceAllStringFunc(s, func(m string) string {
		parts := repetition.FindStringSubmatch(m)
		n, err := strconv.Atoi(parts[2])
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(strings.Repeat(parts[1]+parts[3], n), parts[3])
	})
}

func eachLine(input string, do func(string) string) string {
	var out strings.Builder
	for line := range strings.Lines(input) {
		out.WriteString(do(strings.TrimSuffix(line, "\n")))
	}
	return out.String()
}

func printFilter(s string) string {
	f, err := event.ParseFilter(s)
	if err != nil {
		return fmt.Sprintf("refused: %v\n", err)
	}
	return fmt.Sprintf("%q %s %q\n", f.Facet, event.Operator, f.Value)
}

func printBatch(t *testing.T, events []event.Event, err error) string {
	var refusal *event.Refusal
	if errors.As(err, &refusal) {
		if refusal.Field != "" {
			refusal.Message += " [" + refusal.Field + "]"
		}
		if refusal.Position < 0 {
			return fmt.Sprintf("%s %s\n", refusal.Kind, refusal.Message)
		}
		return fmt.Sprintf("%s %s\n  event %d: %s\n", refusal.Kind, refusal.Message, refusal.Position, shorten(string(refusal.Event)))
	}
	if err != nil {
		t.Fatalf("an error that is not a Refusal: %v", err)
	}
	if len(events) > 20 {
		return fmt.Sprintf("%d events\n", len(events))
	}
	var out strings.Builder
	for _, e := range events {
		out.WriteString(printEvent(e))
	}
	return out.String()
}

func printEvent(e event.Event) string {
	kind := string(e.Type)
	if e.Subtype != "" {
		kind += "/" + e.Subtype
	}
	out := fmt.Sprintf("%s %s %q index=%s user=%s", e.ID(), kind, shorten(e.Name), shorten(e.Index), shorten(e.UserToken))
	if e.AuthenticatedUserToken != "" {
		out += " authenticated=" + shorten(e.AuthenticatedUserToken)
	}
	if e.QueryID != "" {
		out += " query=" + shorten(e.QueryID)
	}
	out += " " + time.UnixMilli(e.Time).UTC().Format("2006-01-02T15:04:05.000Z")
	if e.Received {
		out += " received"
	}
	for _, id := range e.ObjectIDs {
		out += fmt.Sprintf(" object=%q", shorten(id))
	}
	for _, f := range e.Filters {
		out += fmt.Sprintf(" filter=%q%s%q", shorten(f.Facet), event.Operator, shorten(f.Value))
	}
	return out + "\n"
}

func shorten(s string) string {
	if len(s) <= 100 {
		return s
	}
	return fmt.Sprintf("%s...(%d bytes)", s[:40], len(s))
}
