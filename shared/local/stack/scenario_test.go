package stack_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/affinityengine/affinity/shared/local/stack"
)

// TestScenarios runs dialogues with a whole engine. Each file has its own engine,
// whose clock starts at noon of 20 November 2026. Commands:
//
//	http METHOD PATH [app=A] [key=K]   a request with the body that follows; prints the status and the answer
//	idle                               waits until every event is in its profile
//	profile USER [path suffix]         prints a profile, one affinity a line
//
// In bodies and paths <now>, <now-2h> and <now+10d> stand for milliseconds, and
// <a*500> for 500 times the letter a; in answers, times are <time>, the
// engine's version is <version>, and what differs between runs is <n>.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		// A recompute waits twice as long. It would change the source of an answer.
		s := start(t, stack.Options{Now: noon, RetentionDays: 90, ConfigTTL: time.Hour})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "http":
				return scenarioHTTP(t, s, d)
			case "idle":
				idle(t, s)
				return ""
			case "profile":
				return scenarioProfile(t, s, d)
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

func scenarioHTTP(t *testing.T, s *stack.Stack, d *datadriven.TestData) string {
	app, key := "demo", "demokey"
	d.MaybeScanArgs(t, "app", &app)
	d.MaybeScanArgs(t, "key", &key)
	code, answer := callAs(t, s, app, key, d.CmdArgs[0].Key, expand(s, d.CmdArgs[1].String()), expand(s, d.Input))
	awaitDeletion(t, s, answer)
	return fmt.Sprintf("%d %s\n", code, stable(answer))
}

// awaitDeletion waits until the deletion that an answer tells of does not cover the next
// request.
func awaitDeletion(t *testing.T, s *stack.Stack, answer string) {
	t.Helper()
	var deletion struct {
		DeletedUntil time.Time `json:"deletedUntil"`
	}
	if json.Unmarshal([]byte(answer), &deletion) != nil {
		return // another answer, which the expected text describes
	}
	for deletion.DeletedUntil.Sub(s.Backends.Now()) > -time.Millisecond {
		time.Sleep(time.Millisecond)
	}
}

func scenarioProfile(t *testing.T, s *stack.Stack, d *datadriven.TestData) string {
	path := "/1/profiles/" + d.CmdArgs[0].String()
	if len(d.CmdArgs) > 1 {
		path += d.CmdArgs[1].String()
	}
	code, answer := call(t, s, "GET", path, "")
	if code != 200 {
		return fmt.Sprintf("%d %s\n", code, answer)
	}
	var p struct {
		LastEventAt     time.Time
		StrategyVersion int
		Source          string
		Total           int
		Affinities      []struct {
			Facet, Operator, Value string
			Score                  float64
			Scores                 map[string]float64
		}
	}
	if err := json.Unmarshal([]byte(answer), &p); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "version %d, %s, %d affinities\n", p.StrategyVersion, p.Source, p.Total)
	for _, a := range p.Affinities {
		fmt.Fprintf(&b, "%s%s%s %.5g", a.Facet, a.Operator, a.Value, a.Score)
		for _, days := range slices.Sorted(maps.Keys(a.Scores)) {
			fmt.Fprintf(&b, " %s:%.5g", days, a.Scores[days])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

var (
	nowMark     = regexp.MustCompile(`<now([+-]\d+[smhd])?>`)
	repeatMark  = regexp.MustCompile(`<(.)\*(\d+)>`)
	timeMark    = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	versionMark = regexp.MustCompile(`"version":"[^"]+"`)
	numberMark  = regexp.MustCompile(`"(taskID|sequence|timestamp|ageDays|took)":[\d.e+-]+`)
)

// expand writes times as milliseconds of the engine's clock as it started.
func expand(s *stack.Stack, text string) string {
	text = repeatMark.ReplaceAllStringFunc(text, func(mark string) string {
		m := repeatMark.FindStringSubmatch(mark)
		n, _ := strconv.Atoi(m[2])
		return strings.Repeat(m[1], n)
	})
	return nowMark.ReplaceAllStringFunc(text, func(mark string) string {
		at := s.Backends.Now()
		if m := nowMark.FindStringSubmatch(mark)[1]; m != "" {
			n, _ := strconv.Atoi(m[:len(m)-1])
			unit := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': day}[m[len(m)-1]]
			at = at.Add(time.Duration(n) * unit)
		}
		return strconv.FormatInt(at.UnixMilli(), 10)
	})
}

func stable(answer string) string {
	answer = timeMark.ReplaceAllString(answer, "<time>")
	answer = versionMark.ReplaceAllString(answer, `"version":"<version>"`)
	answer = numberMark.ReplaceAllString(answer, `"$1":<n>`)
	return regexp.MustCompile(`a{100,}`).ReplaceAllString(answer, "<aaa>")
}
