package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/affinityengine/affinity/shared/api"
)

// TestProfile draws the answers in testdata/bars. Arguments: half-life=DAYS and color.
func TestProfile(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/bars", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd != "draw" {
			d.Fatalf(t, "unknown command %s", d.Cmd)
		}
		var p api.Profile
		if err := json.Unmarshal([]byte(d.Input), &p); err != nil {
			d.Fatalf(t, "%v", err)
		}
		halfLife := ""
		d.MaybeScanArgs(t, "half-life", &halfLife)
		var out bytes.Buffer
		if err := Profile(&out, p, halfLife, NewPalette(d.HasArg("color"))); err != nil {
			d.Fatalf(t, "%v", err)
		}
		return strings.ReplaceAll(out.String(), "\x1b", "ESC")
	})
}
