package event_test

import (
	"bufio"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
)

// TestRealEvents decodes what real shops recorded: every line must be accepted
// as an import would accept it. The data lies beside the repository, if at all.
func TestRealEvents(t *testing.T) {
	files, err := filepath.Glob("../../../shared/data/*/events.ndjson.gz")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no data sets in ../../../shared/data: nothing to decode")
	}
	for _, path := range files {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			t.Parallel()
			decodeFile(t, path)
		})
	}
}

func decodeFile(t *testing.T, path string) {
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	rules := event.Rules{Now: receipt, Index: "shop"}
	lines := bufio.NewScanner(unzipped)
	count := 0
	for lines.Scan() {
		count++
		e, err := event.Decode(lines.Bytes(), rules)
		if err != nil {
			t.Fatalf("line %d: %v: %s", count, err, lines.Bytes())
		}
		if e.Received || e.Index != "shop" || len(e.ObjectIDs) == 0 {
			t.Fatalf("line %d became %+v", count, e)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if count == 0 {
		t.Fatal("no events")
	}
	t.Logf("%d events", count)
}
