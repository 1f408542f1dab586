package rows

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	statpb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/local/disk"
)

// fault returns an error of the folder with its status.
func fault(err error) error {
	if errors.Is(err, disk.ErrFull) {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

// locks keep writers of one row apart. Rows share locks.
type locks struct {
	seed maphash.Seed
	mu   [1024]sync.Mutex
}

// hold takes the locks of rows, in one order, and returns what gives them back.
func (l *locks) hold(rows ...[]byte) func() {
	numbers := make([]int, len(rows))
	for i, row := range rows {
		numbers[i] = int(maphash.Bytes(l.seed, row) % uint64(len(l.mu)))
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	for _, n := range numbers {
		l.mu[n].Lock()
	}
	return func() {
		for _, n := range numbers {
			l.mu[n].Unlock()
		}
	}
}

// writer is a change of rows of one table. It holds the families that it has read or
// changed.
type writer struct {
	disk    *disk.Disk
	table   *table
	now     time.Time
	content map[string][]cell // by key of the family of the row
	changed map[string]bool
	// added are cells of families that nobody has read. They are joined to what is there.
	added map[string][]cell
}

func (s *service) writer(t *table) *writer {
	return &writer{disk: s.tables.disk, table: t, now: time.Now(), content: map[string][]cell{},
		changed: map[string]bool{}, added: map[string][]cell{}}
}

// load returns the cells of a family of a row.
func (w *writer) load(f *family, row []byte) ([]cell, error) {
	key := f.key(row)
	if cells, ok := w.content[string(key)]; ok {
		return cells, nil
	}
	var cells []cell
	_, err := w.disk.Get(key, func(value []byte) (err error) {
		cells, err = decode(nil, f, bytes.Clone(value))
		return err
	})
	if err != nil {
		return nil, fault(err)
	}
	for _, c := range w.added[string(key)] {
		cells, w.changed[string(key)] = set(cells, c), true
	}
	delete(w.added, string(key))
	w.content[string(key)] = cells
	return cells, nil
}

// row returns all cells of a row.
func (w *writer) row(row []byte) ([]cell, error) {
	var all []cell
	for _, f := range w.table.Families {
		cells, err := w.load(f, row)
		if err != nil {
			return nil, err
		}
		all = append(all, cells...)
	}
	return all, nil
}

// keep replaces the cells of a family of a row.
func (w *writer) keep(f *family, row []byte, cells []cell) {
	key := string(f.key(row))
	w.content[key], w.changed[key] = f.collected(cells, w.now), true
	delete(w.added, key)
}

// add adds cells to a family of a row. It reads the family only if it has to collect
// superseded cells.
func (w *writer) add(f *family, row []byte, cells []cell) error {
	key := string(f.key(row))
	_, known := w.content[key]
	if f.rule == nil && !known {
		all, more := w.added[key]
		if !more {
			w.added[key] = cells
			return nil
		}
		for _, c := range cells {
			all = set(all, c)
		}
		w.added[key] = all
		return nil
	}
	old, err := w.load(f, row)
	if err != nil {
		return err
	}
	all := slices.Clone(old)
	for _, c := range cells {
		all = set(all, c)
	}
	w.keep(f, row, all)
	return nil
}

// commit writes what is changed.
func (w *writer) commit() error {
	if len(w.changed)+len(w.added) == 0 {
		return nil
	}
	b := w.disk.NewBatch()
	for key, cells := range w.added {
		b.Join([]byte(key), encode(cells))
	}
	for key := range w.changed {
		if cells := w.content[key]; len(cells) > 0 {
			b.Set([]byte(key), encode(cells))
		} else {
			b.Delete([]byte(key))
		}
	}
	return fault(w.disk.Commit(b))
}

// MutateRow changes a row.
func (s *service) MutateRow(_ context.Context, req *btpb.MutateRowRequest) (*btpb.MutateRowResponse, error) {
	if len(req.GetMutations()) == 0 {
		return nil, invalid("No mutations provided")
	}
	err := s.write(req.GetTableName(), [][]byte{req.GetRowKey()}, func(w *writer) error {
		return w.apply(req.GetRowKey(), req.GetMutations())
	})
	return &btpb.MutateRowResponse{}, err
}

// write calls f with a writer while no other one changes the rows, and commits what f
// has changed if it returns nil.
func (s *service) write(name string, keys [][]byte, f func(*writer) error) error {
	t, err := s.tables.find(name)
	if err != nil {
		return err
	}
	t.change.RLock()
	defer t.change.RUnlock()
	rows := make([][]byte, len(keys))
	for i, key := range keys {
		rows[i] = t.row(key)
	}
	defer s.locks.hold(rows...)()
	w := s.writer(t)
	if err := f(w); err != nil {
		return err
	}
	return w.commit()
}

// MutateRows changes rows, each as far as its own mutations are valid.
func (s *service) MutateRows(req *btpb.MutateRowsRequest, stream btpb.Bigtable_MutateRowsServer) error {
	mutations := 0
	keys := make([][]byte, len(req.GetEntries()))
	for i, e := range req.GetEntries() {
		mutations += len(e.GetMutations())
		keys[i] = e.GetRowKey()
	}
	if mutations == 0 {
		return invalid("No mutations provided")
	}
	resp := &btpb.MutateRowsResponse{}
	err := s.write(req.GetTableName(), keys, func(w *writer) error {
		for i, e := range req.GetEntries() {
			result := &statpb.Status{}
			if err := w.apply(e.GetRowKey(), e.GetMutations()); err != nil {
				result = &statpb.Status{Code: int32(codes.Internal), Message: err.Error()}
			}
			resp.Entries = append(resp.Entries, &btpb.MutateRowsResponse_Entry{Index: int64(i), Status: result})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return stream.Send(resp)
}

// CheckAndMutateRow changes a row in one of two ways, depending on what it holds.
func (s *service) CheckAndMutateRow(_ context.Context,
	req *btpb.CheckAndMutateRowRequest) (*btpb.CheckAndMutateRowResponse, error) {
	predicate, err := compile(req.GetPredicateFilter())
	if err != nil {
		return nil, err
	}
	resp := &btpb.CheckAndMutateRowResponse{}
	err = s.write(req.GetTableName(), [][]byte{req.GetRowKey()}, func(w *writer) error {
		cells, err := w.row(w.table.row(req.GetRowKey()))
		if err != nil {
			return err
		}
		mutations := req.GetFalseMutations()
		if resp.PredicateMatched = len(predicate(req.GetRowKey(), cells)) > 0; resp.PredicateMatched {
			mutations = req.GetTrueMutations()
		}
		return w.apply(req.GetRowKey(), mutations)
	})
	return resp, err
}

// ReadModifyWriteRow changes the newest cells of columns.
func (s *service) ReadModifyWriteRow(_ context.Context,
	req *btpb.ReadModifyWriteRowRequest) (*btpb.ReadModifyWriteRowResponse, error) {
	if len(req.GetRowKey()) == 0 {
		return nil, invalid("Row keys must be non-empty")
	}
	var written []cell
	err := s.write(req.GetTableName(), [][]byte{req.GetRowKey()}, func(w *writer) error {
		row := w.table.row(req.GetRowKey())
		for _, rule := range req.GetRules() {
			c, err := w.modify(row, rule)
			if err != nil {
				return err
			}
			written = slices.DeleteFunc(written, func(other cell) bool { return sameColumn(&c, &other) })
			written = set(written, c)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &btpb.ReadModifyWriteRowResponse{Row: &btpb.Row{Key: req.GetRowKey(), Families: answered(written)}}, nil
}

// modify applies one rule and returns the cell that it wrote.
func (w *writer) modify(row []byte, rule *btpb.ReadModifyWriteRule) (cell, error) {
	f := w.table.family(rule.GetFamilyName())
	if f == nil {
		return cell{}, fmt.Errorf("unknown family %q", rule.GetFamilyName())
	}
	cells, err := w.load(f, row)
	if err != nil {
		return cell{}, err
	}
	c := cell{family: f, qualifier: string(rule.GetColumnQualifier()), ts: w.now.UnixMilli() * unit}
	var old []byte
	if i := slices.IndexFunc(cells, func(other cell) bool { return sameColumn(&c, &other) }); i >= 0 {
		// A cell of the future stays the newest.
		old, c.ts = cells[i].value, max(c.ts, cells[i].ts)
	}
	switch r := rule.GetRule().(type) {
	case *btpb.ReadModifyWriteRule_AppendValue:
		c.value = append(old[:len(old):len(old)], r.AppendValue...)
	case *btpb.ReadModifyWriteRule_IncrementAmount:
		if len(old) != 0 && len(old) != 8 {
			return cell{}, errors.New("increment on non-64-bit value")
		}
		n := r.IncrementAmount
		if len(old) == 8 {
			n += int64(binary.BigEndian.Uint64(old))
		}
		c.value = binary.BigEndian.AppendUint64(nil, uint64(n))
	default:
		return cell{}, invalid("unknown rule %T", r)
	}
	w.keep(f, row, set(slices.Clone(cells), c))
	return c, nil
}

// answered returns sorted cells as an answer holds them.
func answered(cells []cell) []*btpb.Family {
	var families []*btpb.Family
	for _, c := range cells {
		if n := len(families); n == 0 || families[n-1].Name != c.family.Name {
			families = append(families, &btpb.Family{Name: c.family.Name})
		}
		f := families[len(families)-1]
		f.Columns = append(f.Columns, &btpb.Column{Qualifier: []byte(c.qualifier),
			Cells: []*btpb.Cell{{TimestampMicros: c.ts, Value: c.value}}})
	}
	return families
}
