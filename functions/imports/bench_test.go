package imports_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/admin"
	"github.com/affinityengine/affinity/functions/catalog"
	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/shared/local/cpu"
	"github.com/affinityengine/affinity/shared/local/functiontest"
)

// BenchmarkImportAndRestore imports events of new users, and restores the lines that a dump has of
// them for other new users. It reports the processor time of each by turns, without folds.
func BenchmarkImportAndRestore(b *testing.B) {
	const users, events = 80, 2_000
	for _, names := range []string{"filters", "objects"} {
		b.Run(names, func(b *testing.B) {
			s := functiontest.Start(b)
			h := imports.New(s.Backends.ForImports())
			var objects, lines strings.Builder
			for i := range 50 {
				fmt.Fprintf(&objects, `{"action":"addObject","body":{"objectID":"p%d","brand":"B%d","color":"C%d","size":"S%d","category":"K%d"}},`, i, i%6, i%12, i%9, i%40)
			}
			functiontest.Do(b, catalog.New(s.Backends.ForCatalog()), "addObject", "POST", "/1/indexes/products/batch",
				`{"requests":[`+strings.TrimSuffix(objects.String(), ",")+`]}`)
			for i := range events {
				fmt.Fprintf(&lines, `{"eventType":"view","eventName":"Product Viewed","index":"products","userToken":"none-%d","timestamp":%d,`,
					i*users/events, time.Now().Add(time.Duration(i-3*events)*time.Minute).UnixMilli())
				if names == "filters" {
					fmt.Fprintf(&lines, `"filters":["brand:B%d","color:C%d","size:S%d","category:K%d"]}`+"\n", i%6, i%12, i%9, i%40)
				} else {
					fmt.Fprintf(&lines, `"objectIDs":["p%d"]}`+"\n", i%50)
				}
			}
			const path = "/1/events/import"
			functiontest.Do(b, h, "admin", "POST", path, lines.String())
			var dumped strings.Builder
			for line := range strings.Lines(functiontest.Do(b, admin.New(s.Backends.ForAdmin()), "admin", "GET", "/1/dump", "")) {
				if strings.HasPrefix(line, `{"exportedEvent":`) {
					dumped.WriteString(line)
				}
			}
			var spent [2]time.Duration
			for n := 0; b.Loop(); n++ {
				for k := range 2 {
					i := (n + k) % 2
					body := []string{lines.String(), dumped.String()}[i]
					body = strings.ReplaceAll(body, `"none-`, fmt.Sprintf(`"%s%03d-`, []string{"i", "r"}[i], n))
					begun := cpu.Time()
					answer := functiontest.Do(b, h, "admin", "POST", path+[]string{"", "?receipts=kept"}[i], body)
					spent[i] += cpu.Time() - begun
					if !strings.HasPrefix(answer, fmt.Sprintf(`{"accepted":%d,`, events)) {
						b.Fatal(answer)
					}
				}
			}
			for i, name := range []string{"import", "restore"} {
				b.ReportMetric(float64(spent[i].Nanoseconds())/1000/float64(b.N*events), name+"-us/event")
			}
			b.ReportMetric(float64(spent[1])/float64(spent[0]), "restore/import")
			b.ReportMetric(float64(dumped.Len())/float64(lines.Len()), "bytes")
		})
	}
}
