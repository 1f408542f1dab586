// Package realdata reads the logs and catalogs of real shops that may lie beside
// the checkout, in ../shared/data. They are not part of the project: a test that
// wants one is skipped where it is absent, and with -short.
package realdata

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Files of a data set.
const (
	EventsFile   = "events.ndjson.gz"
	ObjectsFile  = "objects.ndjson.gz"
	ProfilesFile = "expected-profiles.sample.ndjson.gz" // computed by other software
	StrategyFile = "strategy.json"
)

// Index is the index that Events names.
const Index = "products"

// With returns the names of the data sets that have a file, and skips the test if
// there are none.
func With(tb testing.TB, file string) []string {
	tb.Helper()
	pattern := filepath.Join(folder(tb), "*", file)
	paths, err := filepath.Glob(pattern)
	if err != nil {
		tb.Fatal(err)
	}
	if len(paths) == 0 {
		tb.Skipf("no real data at %s, so this is not tested", pattern)
	}
	var sets []string
	for _, path := range paths {
		sets = append(sets, filepath.Base(filepath.Dir(path)))
	}
	return sets
}

// Path returns the path of a file of a data set, and skips the test if the file
// is absent.
func Path(tb testing.TB, set, file string) string {
	tb.Helper()
	path := filepath.Join(folder(tb), set, file)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		tb.Skipf("no real data at %s, so this is not tested", path)
	} else if err != nil {
		tb.Fatal(err)
	}
	return path
}

// folder returns the folder of the data, beside that of the module that the test
// runs in.
func folder(tb testing.TB) string {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short reads no real data")
	}
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(filepath.Dir(dir), "shared", "data")
		}
		if dir == filepath.Dir(dir) {
			tb.Fatal("the test does not run in the checkout")
		}
		dir = filepath.Dir(dir)
	}
}

// Lines yields the lines of a gzipped file. A line is valid until the next.
func Lines(tb testing.TB, set, file string) func(yield func([]byte) bool) {
	tb.Helper()
	path := Path(tb, set, file)
	return func(yield func([]byte) bool) {
		tb.Helper()
		packed, err := os.Open(path)
		if err != nil {
			tb.Fatal(err)
		}
		defer func() { _ = packed.Close() }()
		unpacked, err := gzip.NewReader(packed)
		if err != nil {
			tb.Fatalf("%s: %v", path, err)
		}
		lines := bufio.NewScanner(unpacked)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if !yield(lines.Bytes()) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			tb.Fatalf("%s: %v", path, err)
		}
	}
}

// Decoded returns the lines of a gzipped file of JSON.
func Decoded[T any](tb testing.TB, set, file string) []T {
	tb.Helper()
	var all []T
	for line := range Lines(tb, set, file) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			tb.Fatalf("%s of %s: %v", file, set, err)
		}
		all = append(all, v)
	}
	return all
}

// Object is an object of a catalog with its filters under the settings of a new
// index.
type Object struct {
	ID      string
	Filters []event.Filter
}

// Objects returns the catalog of a data set.
func Objects(tb testing.TB, set string) []Object {
	tb.Helper()
	var objects []Object
	for line := range Lines(tb, set, ObjectsFile) {
		var record struct{ ObjectID string }
		filters, err := catalog.Filters(line, catalog.Settings{})
		if err := errors.Join(err, json.Unmarshal(line, &record)); err != nil {
			tb.Fatalf("object of %s: %v: %s", set, err, line)
		}
		objects = append(objects, Object{record.ObjectID, filters})
	}
	return objects
}

// Events yields the log of a data set as an import of it into Index decodes it.
func Events(tb testing.TB, set string) func(yield func(event.Event) bool) {
	tb.Helper()
	rules := event.Rules{Now: time.Now(), Index: Index}
	lines := Lines(tb, set, EventsFile)
	return func(yield func(event.Event) bool) {
		tb.Helper()
		for line := range lines {
			// The strings of an event share the memory of its line, which Lines reuses.
			e, err := event.Decode(bytes.Clone(line), rules)
			if err != nil {
				tb.Fatalf("event of %s: %v: %s", set, err, line)
			}
			if !yield(e) {
				return
			}
		}
	}
}

// Strategy returns the strategy of a data set. It names no impact, so it gets the
// one with which `affinity import` sends it.
func Strategy(tb testing.TB, set string) strategy.Strategy {
	tb.Helper()
	text, err := os.ReadFile(Path(tb, set, StrategyFile))
	if err != nil {
		tb.Fatal(err)
	}
	var s strategy.Strategy
	if err := json.Unmarshal(text, &s); err != nil { // not strategy.Decode, which asks for an impact
		tb.Fatal(err)
	}
	s.PersonalizationImpact = 50
	return s
}
