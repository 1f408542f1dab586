package measure

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// Files of a real data set.
const (
	eventsFile   = "events.ndjson.gz"
	objectsFile  = "objects.ndjson.gz"
	strategyFile = "strategy.json"
)

// realIndex is the index of the events of real data sets.
const realIndex = "products"

// realSets returns the names of the folders of dir that hold a real data set: events,
// objects and a strategy.
func realSets(dir string) (names []string) {
	found, err := filepath.Glob(filepath.Join(dir, "*", strategyFile))
	if err != nil { // a name with brackets
		return nil
	}
	for _, path := range found {
		folder := filepath.Dir(path)
		if isFile(filepath.Join(folder, eventsFile)) && isFile(filepath.Join(folder, objectsFile)) {
			names = append(names, filepath.Base(folder))
		}
	}
	return names
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// openReal reads a real data set as an import reads it. Its clock is an hour after its
// last event, and all its events count.
func openReal(dir, name string) (*dataset, error) {
	d := &dataset{name: name}
	folder := filepath.Join(dir, name)
	var err error
	if d.strategy, err = readStrategy(filepath.Join(folder, strategyFile)); err != nil {
		return nil, err
	}
	objects := bus.Objects{}
	err = eachLine(filepath.Join(folder, objectsFile), func(_ int, line []byte) error { return addObject(objects, line) })
	if err != nil {
		return nil, err
	}
	var events []event.Event
	err = eachLine(filepath.Join(folder, eventsFile), func(i int, line []byte) error {
		// The strings of an event share the memory of its line.
		e, err := event.Decode(slices.Clone(line), event.Rules{Now: time.Now(), Index: realIndex, Ordinal: i})
		d.window.Now = max(d.window.Now, e.Time+time.Hour.Milliseconds())
		events = append(events, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	d.log = enrich.LogEvents(events, bus.Resolution{Objects: objects}, d.window.Now)
	slices.SortStableFunc(d.log, func(x, y store.LogEvent) int {
		return cmp.Or(store.UserOrder(x.User, y.User),
			history.Pos{Time: x.Time, ID: x.ID}.Compare(history.Pos{Time: y.Time, ID: y.ID}))
	})
	d.log = slices.CompactFunc(d.log, func(x, y store.LogEvent) bool {
		return x.User == y.User &&
			x.Time == y.Time && x.ID == y.ID
	})
	for i, e := range d.log {
		if i == 0 || d.log[i-1].User != e.User {
			d.firsts = append(d.firsts, i)
		}
	}
	d.users = len(d.firsts)
	if d.users == 0 {
		return nil, fmt.Errorf("%s has no events", folder)
	}
	return d, nil
}

func addObject(objects bus.Objects, line []byte) error {
	var record struct{ ObjectID string }
	filters, err := catalog.Filters(line, catalog.Settings{})
	if err := errors.Join(err, json.Unmarshal(line, &record)); err != nil {
		return err
	}
	pairs := make([]bus.Filter, len(filters))
	for i, f := range filters {
		pairs[i] = bus.Filter{f.Facet, f.Value}
	}
	objects.Put(realIndex, record.ObjectID, pairs)
	return nil
}

// longestLine is the size of the longest line of a data set, in bytes.
const longestLine = 1 << 20

// eachLine passes the lines of a gzipped file and their numbers from 0. A line is valid
// until the next.
func eachLine(path string, do func(i int, line []byte) error) error {
	packed, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open real data: %w", err)
	}
	defer func() { _ = packed.Close() }() // nothing was written
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("unzip %s: %w", path, err)
	}
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, longestLine)
	for i := 0; lines.Scan(); i++ {
		if err := do(i, lines.Bytes()); err != nil {
			return fmt.Errorf("%s, line %d: %w", path, i+1, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// logOf returns the rows of a user of a real data set.
func (d *dataset) logOf(i int) []store.LogEvent {
	end := len(d.log)
	if i+1 < len(d.firsts) {
		end = d.firsts[i+1]
	}
	return d.log[d.firsts[i]:end]
}

// realEvents is events of a real data set.
func (d *dataset) realEvents(i int, into []entry) []entry {
	into = into[:0]
	for _, e := range d.logOf(i) {
		into = append(into, entry{affinity.Event{Time: e.Time, Type: e.Type, Name: e.Name, Counts: e.Counts}, e.ID})
	}
	return into
}
