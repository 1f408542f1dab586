package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/event"
)

// The narrow schema is the published one: a row app,user,time,id an event, one cell in it. Its family is the event's type, its
// qualifier the event's name, its value a JSON list of filter counts.
const (
	tableNarrow  = "events_narrow"
	narrowLayout = "2006-01-02T15:04:05.000Z"
)

// filterCount is an item of the list.
type filterCount struct {
	FacetName  string `json:"facetName"`
	FacetValue string `json:"facetValue"`
	Count      int    `json:"count"`
}

// narrowKey is an event's row.
func narrowKey(user string, e *entry) string {
	return appID + "," + user + "," + eventTime(e.Time).Format(narrowLayout) + "," + e.ID
}

func appendNarrow(counts []affinity.Count, scratch []filterCount) ([]byte, []filterCount, error) {
	scratch = slices.Grow(scratch[:0], len(counts)+1) // not nil, which would be null
	for _, c := range counts {
		scratch = append(scratch, filterCount{c.Facet, c.Value, c.N})
	}
	value, err := json.Marshal(scratch)
	return value, scratch, err
}

// loadNarrow makes the table and writes the data set to it.
func loadNarrow(ctx context.Context, c *client, d *dataset, _ Recompute) error {
	if err := c.admin.CreateTable(ctx, tableNarrow); err != nil && status.Code(err) != codes.AlreadyExists {
		return fmt.Errorf("create table %s: %w", tableNarrow, err)
	}
	for _, typ := range []event.Type{event.View, event.Click, event.Conversion} {
		err := c.admin.CreateColumnFamilyWithConfig(ctx, tableNarrow, string(typ), bigtable.Family{})
		if err != nil && status.Code(err) != codes.AlreadyExists {
			return fmt.Errorf("create family %s of table %s: %w", typ, tableNarrow, err)
		}
	}
	table := c.raw.Open(tableNarrow)
	return eachShard(ctx, d.users, logShard, func() func(context.Context, span) error {
		var events []entry
		var scratch []filterCount
		return func(ctx context.Context, sp span) error {
			var keys []string
			var muts []*bigtable.Mutation
			for i := sp.from; i < sp.to; i++ {
				events = d.events(i, events)
				for j := range events {
					e := &events[j]
					var value []byte
					var err error
					if value, scratch, err = appendNarrow(e.Counts, scratch); err != nil {
						return fmt.Errorf("encode an event: %w", err)
					}
					m := bigtable.NewMutation()
					m.Set(string(e.Type), e.Name, bigtable.Timestamp(e.Time*1000), value)
					keys, muts = append(keys, narrowKey(d.user(i), e)), append(muts, m)
				}
				if err := applyAll(ctx, table, keys, muts); err != nil {
					return err
				}
				keys, muts = keys[:0], muts[:0]
			}
			return nil
		}
	})
}

func applyAll(ctx context.Context, table *bigtable.Table, keys []string, muts []*bigtable.Mutation) error {
	errs, err := table.ApplyBulk(ctx, keys, muts)
	if err := errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("write %d rows: %w", len(keys), err)
	}
	return nil
}

// decoder adds the filter counts of a cell's value to what was begun.
type decoder func(sections map[string]affinity.Section, value []byte, sc *affinity.Scorer) error

// narrowJSON decodes with encoding/json, one Unmarshal a row into memory that is used again.
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

// narrowFast decodes with a scanner for exactly this JSON.
func narrowFast() decoder {
	var s scanner
	return func(sections map[string]affinity.Section, value []byte, sc *affinity.Scorer) error {
		return s.each(value, func(facet, value []byte, count int) {
			if section, ok := sections[string(facet)]; ok {
				sc.Add(section, value, count)
			}
		})
	}
}

// narrowReader recomputes from narrow rows.
type narrowReader struct {
	c        *client
	d        *dataset
	compiled *affinity.Compiled
	decoder  func() decoder
}

func openNarrow(name string, c *client, d *dataset, _ Recompute) (reader, error) {
	r := &narrowReader{c: c, d: d, compiled: affinity.Compile(d.strategy), decoder: narrowJSON}
	if name == NarrowFast {
		r.decoder = narrowFast
	}
	return r, nil
}

func (r *narrowReader) floor(ctx context.Context) error {
	table := r.c.raw.Open(tableNarrow)
	return eachShard(ctx, r.d.users, logShard, func() func(context.Context, span) error {
		return func(ctx context.Context, sp span) error {
			return table.ReadRows(ctx, r.rows(sp), func(bigtable.Row) bool { return true })
		}
	})
}

func (r *narrowReader) rows(sp span) bigtable.RowRange {
	return bigtable.NewRange(appID+","+r.d.user(sp.from)+",", appID+","+r.d.user(sp.to)+",")
}

func (r *narrowReader) recompute(ctx context.Context, t *target) error {
	table := r.c.raw.Open(tableNarrow)
	return eachShard(ctx, r.d.users, logShard, func() func(context.Context, span) error {
		n := narrowScan{reader: r, decode: r.decoder(), scorer: affinity.NewScorer(r.compiled, window),
			sections: map[string]map[string]affinity.Section{}, out: t.output()}
		return func(ctx context.Context, sp span) error {
			err := errors.Join(table.ReadRows(ctx, r.rows(sp), n.row), n.err)
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

// narrowScan is one worker's state.
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
		n.scorer.Reset(window)
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

// facets are the sections of a column, which is family:qualifier.
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

// end hands the profile of the user over whose rows have passed.
func (n *narrowScan) end() {
	if n.prefix != "" {
		n.err = n.out.add(n.user, n.scorer, n.events)
		n.prefix, n.events = "", 0
	}
}
