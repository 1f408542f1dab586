package telemetry_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	codeMetric = regexp.MustCompile(`"affinity\.([a-z_]+)"`)
	ruleMetric = regexp.MustCompile(`\baffinity_([a-z_]+?)(?:_total|_seconds|_seconds_bucket)\b`)
)

// TestRulesNameMetrics: each metric of the rules for Prometheus is one that the code makes, and each rule has one.
func TestRulesNameMetrics(t *testing.T) {
	made := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range codeMetric.FindAllSubmatch(text, -1) {
			made[string(m[1])] = true
		}
		return err
	})
	if err != nil || len(made) < 30 {
		t.Fatalf("found %d metrics in the code (%v)", len(made), err)
	}
	rules, err := os.ReadFile("../../scripts/release/prometheus.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	exprs := 0
	for line := range strings.Lines(string(rules)) {
		expr, ok := strings.CutPrefix(strings.TrimSpace(line), "expr: ")
		if !ok {
			continue
		}
		exprs++
		named := ruleMetric.FindAllStringSubmatch(expr, -1)
		for _, m := range named {
			if !made[m[1]] {
				t.Errorf("no code makes affinity.%s: %s", m[1], expr)
			}
		}
		if len(named) != strings.Count(expr, "affinity_") || len(named) == 0 && !strings.HasPrefix(expr, "up{") {
			t.Errorf("the names of metrics in %s are not read", expr)
		}
	}
	if exprs < 5 {
		t.Errorf("%d rules", exprs)
	}
}
