package catalog_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/fault"
)

// randomID matches an objectID that the engine made.
var randomID = regexp.MustCompile(`[A-Z2-7]{26}`)

// TestScenarios runs the dialogues in testdata/scenarios. Commands:
//
//	settings   one entry of attributesForFaceting a line, "unset" for none
//	filters    the filters of a record under the last settings
//	batch      the actions of the body of a batch
//	merge      two JSON objects, one a line: the record and the partial update
//	put        the lists that a body sets
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		var settings catalog.Settings
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "settings":
				settings = settingsOf(d.Input)
				return ""
			case "filters":
				return filters(d.Input, settings)
			case "batch":
				return batch(d.Input)
			case "merge":
				return merge(d.Input)
			case "put":
				return put(d.Input)
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

func settingsOf(input string) catalog.Settings {
	if input == "unset" {
		return catalog.Settings{}
	}
	return catalog.Settings{AttributesForFaceting: strings.Split(input, "\n"), Version: 1}
}

func filters(record string, s catalog.Settings) string {
	got, err := catalog.Filters([]byte(record), s)
	if err != nil {
		return "error: " + err.Error()
	}
	if len(got) == 0 {
		return "no filters"
	}
	var out strings.Builder
	for _, f := range got {
		fmt.Fprintf(&out, "%s:%s\n", f.Facet, f.Value)
	}
	return out.String()
}

func batch(body string) string {
	actions, err := catalog.DecodeBatch([]byte(body))
	if err != nil {
		return answer(err)
	}
	if len(actions) == 0 {
		return "no actions"
	}
	var out strings.Builder
	for _, a := range actions {
		fmt.Fprintf(&out, "%s %s %s\n", a.Kind, a.ObjectID, a.Record)
	}
	return randomID.ReplaceAllString(out.String(), "(random)")
}

// answer is the kind and the message of a refusal.
func answer(err error) string {
	var refusal *fault.Error
	if !errors.As(err, &refusal) {
		return "error: " + err.Error()
	}
	return fmt.Sprintf("%s %s", refusal.Kind, refusal.Message)
}

func merge(input string) string {
	old, patch, _ := strings.Cut(input, "\n")
	record := []byte(old)
	if old == "none" {
		record = nil
	}
	got, err := catalog.Merge(record, []byte(patch))
	if err != nil {
		return answer(err)
	}
	return string(got)
}

func put(body string) string {
	change, err := catalog.DecodeSettings([]byte(body))
	if err != nil {
		return answer(err)
	}
	var lists []string
	if change.AttributesForFaceting != nil {
		lists = append(lists, fmt.Sprintf("%q", change.AttributesForFaceting))
	}
	if change.PrivateFacets != nil {
		lists = append(lists, fmt.Sprintf("private %q", change.PrivateFacets))
	}
	if lists == nil {
		return "unchanged"
	}
	return strings.Join(lists, "\n")
}

func TestValidIndex(t *testing.T) {
	for name, want := range map[string]bool{
		"":                                false,
		"products":                        true,
		"prod/fr, été 1":                  true,
		"\xff":                            false,
		strings.Repeat("x", 512):          true,
		strings.Repeat("x", 513):          false,
		strings.Repeat("é", 256):          true,
		strings.Repeat("é", 256) + "\x00": false,
	} {
		if got := catalog.ValidIndex(name); got != want {
			t.Errorf("ValidIndex(%.20q, %d bytes) = %v, want %v", name, len(name), got, want)
		}
	}
}
