package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// published is the layout of the published schema: a row app,user,time,id per
// event with one cell. Its family is the event's type, its qualifier the event's
// name, its value a JSON list of filter counts.
var published = schema.Of(schema.Narrow)

// filterCount is an item of the list.
type filterCount struct {
	FacetName  string `json:"facetName"`
	FacetValue string `json:"facetValue"`
	Count      int    `json:"count"`
}

// loadPublished writes the data set to the engine's narrow log and removes the
// original events, which the published schema does not have.
func loadPublished(ctx context.Context, c *client, d *dataset, _ int) error {
	if err := loadLog(ctx, c, d, published); err != nil {
		return err
	}
	if err := c.admin.DeleteColumnFamily(ctx, store.TableEventsNarrow, familyOriginal); err != nil {
		return fmt.Errorf("delete family %s of table %s: %w", familyOriginal, store.TableEventsNarrow, err)
	}
	return nil
}

// openPublished returns the published reader, or the engine's for the same rows.
func openPublished(name string, c *client, d *dataset, _ int) reader {
	compiled := affinity.Compile(d.strategy)
	if name == NarrowFast {
		return &logReader{log: c.store.Events.Log(appID, published), d: d, compiled: compiled}
	}
	return &narrowReader{c: c, d: d, compiled: compiled, decode: narrowJSON}
}

// decoder appends the filter counts of a cell's value to a list.
type decoder func(sections map[string]affinity.Section, value []byte, sc *affinity.Scorer) error

// narrowJSON decodes with encoding/json, with one Unmarshal per row into reused
// memory.
func narrowJSON() decoder {
	var list []filterCount
	return func(sections map[string]affinity.Section, value []byte, sc *affinity.Scorer) error {
		list = list[:0]
		if err := json.Unmarshal(value, &list); err != nil {
			return err
		}
		for i := range list {
			if section, ok := sections[list[i].FacetName]; ok {
				sc.Add(section, []byte(list[i].FacetValue), list[i].Count)
			}
		}
		return nil
	}
}

// narrowReader recomputes from narrow rows like the published engine.
type narrowReader struct {
	c        *client
	d        *dataset
	compiled *affinity.Compiled
	decode   func() decoder // of a worker
}

func (r *narrowReader) floor(ctx context.Context) error {
	table := r.c.raw.Open(store.TableEventsNarrow)
	return eachShard(ctx, r.d.users, r.d.logShard(), func() func(context.Context, span) error {
		return func(ctx context.Context, sp span) error {
			return table.ReadRows(ctx, rowsOf(r.d, sp), func(bigtable.Row) bool { return true })
		}
	})
}

// rowsOf is the range of some users' rows, in any table of the log.
func rowsOf(d *dataset, sp span) bigtable.RowRange {
	return bigtable.NewRange(appID+","+d.user(sp.from)+",", appID+","+d.user(sp.to)+",")
}

func (r *narrowReader) recompute(ctx context.Context, t *target) error {
	table := r.c.raw.Open(store.TableEventsNarrow)
	return eachShard(ctx, r.d.users, r.d.logShard(), func() func(context.Context, span) error {
		n := narrowScan{reader: r, decode: r.decode(), scorer: affinity.NewScorer(r.compiled, r.d.window),
			sections: map[string]map[string]affinity.Section{}, out: t.output()}
		return func(ctx context.Context, sp span) error {
			err := errors.Join(table.ReadRows(ctx, rowsOf(r.d, sp), n.row), n.err)
			if err != nil {
				return fmt.Errorf("read narrow rows: %w", err)
			}
			if n.end(); n.err != nil {
				return n.err
			}
			return n.out.flush(ctx)
		}
	})
}

// narrowScan is the state of one worker.
type narrowScan struct {
	reader   *narrowReader
	decode   decoder
	scorer   *affinity.Scorer
	sections map[string]map[string]affinity.Section // by column, then facet
	out      *output
	user     string
	prefix   string // of the user's keys
	events   int
	err      error
}

func (n *narrowScan) row(r bigtable.Row) bool {
	if key := r.Key(); n.prefix == "" || !strings.HasPrefix(key, n.prefix) {
		if n.end(); n.err != nil {
			return false
		}
		_, rest, _ := strings.Cut(key, ",")
		user, _, ok := strings.Cut(rest, ",")
		if !ok {
			n.err = fmt.Errorf("key %q is not app,user,time,id", key)
			return false
		}
		n.user, n.prefix = strings.Clone(user), strings.Clone(key[:len(appID)+len(user)+2])
		n.scorer.Reset(n.reader.d.window)
	}
	n.events++
	for typ, items := range r {
		for _, item := range items {
			if !n.scorer.Begin(item.Timestamp.Time().UnixMilli()) {
				continue
			}
			if n.err = n.decode(n.facets(typ, item.Column), item.Value, n.scorer); n.err != nil {
				n.err = fmt.Errorf("row %q: %w", r.Key(), n.err)
				return false
			}
		}
	}
	return true
}

// facets returns the sections of a column, which is family:qualifier.
func (n *narrowScan) facets(typ, column string) map[string]affinity.Section {
	sections, ok := n.sections[column]
	if !ok {
		sections = map[string]affinity.Section{}
		for _, facet := range n.reader.compiled.Facets() {
			if s := n.scorer.Section(typ, column[len(typ)+1:], facet); s.OK() {
				sections[facet] = s
			}
		}
		n.sections[column] = sections
	}
	return sections
}

// end passes on the profile of the user whose rows have ended.
func (n *narrowScan) end() {
	if n.prefix != "" {
		n.err = n.out.add(n.user, n.scorer, n.events)
		n.prefix, n.events = "", 0
	}
}
