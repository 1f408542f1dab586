package rows

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/affinityengine/affinity/shared/local/disk"
)

// Spaces of the folder: of rows, and of what describes tables.
const (
	spaceRows   disk.Space = 'r'
	spaceTables disk.Space = 't'
)

// table is a table as it is stored, as JSON.
type table struct {
	Name string `json:"-"`
	// ID begins the keys of the table's rows. No other table has or had it.
	ID       uint64    `json:"id"`
	Families []*family `json:"families"` // in the order of their creation
	// LastFamily is the highest ID that a family has or had.
	LastFamily uint64 `json:"lastFamily"`

	// change is held for reading by a request that reads or writes rows, and for
	// writing by one that changes Families or drops rows.
	change *sync.RWMutex
}

type family struct {
	Name string `json:"name"`
	ID   uint64 `json:"id"` // the order of creation
	// Rule is the garbage collection, encoded; empty for none.
	Rule []byte `json:"rule,omitempty"`

	rule *btapb.GcRule
}

func (t *table) family(name string) *family {
	i := slices.IndexFunc(t.Families, func(f *family) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return t.Families[i]
}

func (t *table) familyByID(id uint64) *family {
	i, ok := slices.BinarySearchFunc(t.Families, id, func(f *family, id uint64) int {
		if f.ID < id {
			return -1
		}
		return int(min(1, f.ID-id))
	})
	if !ok {
		return nil
	}
	return t.Families[i]
}

// prefix is what the keys of all rows begin with.
func (t *table) prefix() []byte {
	return binary.AppendUvarint([]byte{byte(spaceRows)}, t.ID)
}

// row is what the keys of a row begin with.
func (t *table) row(key []byte) []byte { return disk.AppendPart(t.prefix(), key) }

// key is the key of a family of a row.
func (f *family) key(row []byte) []byte {
	return binary.AppendUvarint(row[:len(row):len(row)], f.ID)
}

// record is the key of what describes the table.
func (t *table) record() []byte { return append([]byte{byte(spaceTables)}, t.Name...) }

// tables are all tables of a folder.
type tables struct {
	disk *disk.Disk
	mu   sync.Mutex
	all  map[string]*table
	last uint64 // highest ID of a table
}

// lastID is the key of the highest ID. No name of a table is empty.
var lastID = []byte{byte(spaceTables)}

func openTables(d *disk.Disk) (*tables, error) {
	ts := &tables{disk: d, all: map[string]*table{}}
	err := d.Each([]byte{byte(spaceTables)}, func(key, value []byte) error {
		if len(key) == 1 {
			return json.Unmarshal(value, &ts.last)
		}
		t := &table{Name: string(key[1:]), change: &sync.RWMutex{}}
		if err := json.Unmarshal(value, t); err != nil {
			return err
		}
		for _, f := range t.Families {
			if err := f.decode(); err != nil {
				return err
			}
		}
		ts.all[t.Name] = t
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the tables of the data folder: %w", err)
	}
	return ts, nil
}

func (f *family) decode() error {
	if len(f.Rule) == 0 {
		return nil
	}
	f.rule = &btapb.GcRule{}
	return proto.Unmarshal(f.Rule, f.rule)
}

// setRule changes the garbage collection; nil for none.
func (f *family) setRule(rule *btapb.GcRule) error {
	f.rule, f.Rule = rule, nil
	if rule == nil {
		return nil
	}
	var err error
	f.Rule, err = proto.Marshal(rule)
	return err
}

// find returns a table, or an error of status NotFound.
func (ts *tables) find(name string) (*table, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.all[name]
	if t == nil {
		return nil, status.Errorf(codes.NotFound, "table %q not found", name)
	}
	return t, nil
}

// named returns the names of tables that begin with a prefix.
func (ts *tables) named(prefix string) []string {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var names []string
	for name := range ts.all {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// create stores a new table with some families.
func (ts *tables) create(name string, families map[string]*btapb.ColumnFamily) (*table, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.all[name] != nil {
		return nil, status.Errorf(codes.AlreadyExists, "table %q already exists", name)
	}
	t := &table{Name: name, ID: ts.last + 1, change: &sync.RWMutex{}}
	for id, f := range families {
		if err := t.add(id, f); err != nil {
			return nil, err
		}
	}
	b := ts.disk.NewBatch()
	b.Set(lastID, fmt.Append(nil, t.ID))
	if err := ts.store(b, t); err != nil {
		return nil, err
	}
	ts.last, ts.all[name] = t.ID, t
	return t, nil
}

// add adds a family.
func (t *table) add(name string, f *btapb.ColumnFamily) error {
	if t.family(name) != nil {
		return status.Errorf(codes.AlreadyExists, "family %q already exists", name)
	}
	if f.GetValueType().GetAggregateType() != nil {
		return status.Errorf(codes.Unimplemented, "family %q: the local Bigtable has no aggregates", name)
	}
	added := &family{Name: name, ID: t.LastFamily + 1}
	if err := added.setRule(f.GetGcRule()); err != nil {
		return err
	}
	t.LastFamily++
	t.Families = append(t.Families, added)
	return nil
}

// store commits a batch and what describes a table.
func (ts *tables) store(b disk.Batch, t *table) error {
	encoded, err := json.Marshal(t)
	if err != nil {
		return err
	}
	b.Set(t.record(), encoded)
	return fault(ts.disk.Commit(b))
}

// drop deletes a table with its rows.
func (ts *tables) drop(name string) error {
	t, err := ts.find(name)
	if err != nil {
		return err
	}
	t.change.Lock()
	defer t.change.Unlock()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	b := ts.disk.NewBatch()
	b.Delete(t.record())
	b.DeleteRange(t.prefix(), disk.After(t.prefix()))
	if err := fault(ts.disk.Commit(b)); err != nil {
		return err
	}
	delete(ts.all, name)
	return nil
}

// collected returns the cells of a family that its garbage collection keeps.
func (f *family) collected(cells []cell, now time.Time) []cell {
	if f.rule.GetRule() == nil {
		return cells
	}
	return columns(cells, func(column []cell) []cell {
		kept := column[:0]
		for i := range column {
			if keeps(f.rule, i, column[i].ts, now) {
				kept = append(kept, column[i])
			}
		}
		return kept
	})
}

// keeps reports whether a rule keeps the cell that has so many newer ones.
func keeps(rule *btapb.GcRule, newer int, ts int64, now time.Time) bool {
	switch r := rule.GetRule().(type) {
	case *btapb.GcRule_MaxNumVersions:
		return newer < int(r.MaxNumVersions)
	case *btapb.GcRule_MaxAge:
		return ts >= now.Add(-r.MaxAge.AsDuration()).UnixMicro()
	case *btapb.GcRule_Union_: // drops what any of its rules drops
		return !slices.ContainsFunc(r.Union.GetRules(), func(r *btapb.GcRule) bool { return !keeps(r, newer, ts, now) })
	case *btapb.GcRule_Intersection_: // drops what all of its rules drop
		return slices.ContainsFunc(r.Intersection.GetRules(), func(r *btapb.GcRule) bool { return keeps(r, newer, ts, now) })
	}
	return true
}
