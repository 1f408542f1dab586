package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/affinityengine/affinity/shared/api"
)

// TestProfile draws the answers in testdata/bars. Arguments: half-life=DAYS and color. Lines that begin with
// a dash are the reasons of an explanation.
func TestProfile(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/bars", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd != "draw" {
			d.Fatalf(t, "unknown command %s", d.Cmd)
		}
		var p api.Profile
		var reasons []string
		var answer strings.Builder
		for line := range strings.Lines(d.Input) {
			if reason, ok := strings.CutPrefix(line, "- "); ok {
				reasons = append(reasons, strings.TrimSpace(reason))
			} else {
				answer.WriteString(line)
			}
		}
		if err := json.Unmarshal([]byte(answer.String()), &p); err != nil {
			d.Fatalf(t, "%v", err)
		}
		halfLife := ""
		d.MaybeScanArgs(t, "half-life", &halfLife)
		var out bytes.Buffer
		if err := Profile(&out, p, halfLife, reasons, NewPalette(d.HasArg("color"))); err != nil {
			d.Fatalf(t, "%v", err)
		}
		return strings.ReplaceAll(out.String(), "\x1b", "ESC")
	})
}
