package rows

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/affinityengine/affinity/shared/local/disk"
)

// interval is a range of row keys, [from, to). It is one row if single is set; then to
// is the first key behind it. A nil to is no end.
type interval struct {
	from, to []byte
	single   bool
}

// intervals returns the rows of a request as intervals that do not overlap, in order.
func intervals(rows *btpb.RowSet) ([]interval, error) {
	var all []interval
	for _, key := range rows.GetRowKeys() {
		all = append(all, interval{from: key, to: behind(key), single: true})
	}
	for i, r := range rows.GetRowRanges() {
		in, err := asked(r)
		if err != nil {
			return nil, invalid("Error in element #%d: %v", i, err)
		}
		all = append(all, in)
	}
	if len(all) == 0 {
		return []interval{{}}, nil
	}
	slices.SortFunc(all, func(a, b interval) int { return bytes.Compare(a.from, b.from) })
	merged := all[:1]
	for _, in := range all[1:] {
		last := &merged[len(merged)-1]
		if last.to == nil {
			break
		}
		if bytes.Compare(in.from, last.to) >= 0 {
			merged = append(merged, in)
			continue
		}
		if in.to == nil || bytes.Compare(in.to, last.to) > 0 {
			last.to, last.single = in.to, false
		}
	}
	return merged, nil
}

// behind returns the first key behind a key.
func behind(key []byte) []byte { return append(key[:len(key):len(key)], 0) }

func asked(r *btpb.RowRange) (interval, error) {
	var in interval
	switch k := r.GetStartKey().(type) {
	case *btpb.RowRange_StartKeyClosed:
		in.from = k.StartKeyClosed
	case *btpb.RowRange_StartKeyOpen:
		in.from = behind(k.StartKeyOpen)
	}
	var end []byte
	switch k := r.GetEndKey().(type) {
	case *btpb.RowRange_EndKeyClosed:
		if end = k.EndKeyClosed; len(end) > 0 {
			in.to = behind(end)
		}
	case *btpb.RowRange_EndKeyOpen:
		if end = k.EndKeyOpen; len(end) > 0 {
			in.to = end
		}
	}
	start := slices.Concat(r.GetStartKeyClosed(), r.GetStartKeyOpen())
	if len(end) > 0 && bytes.Compare(start, end) > 0 {
		return in, errors.New("start_key must be less than end_key")
	}
	return in, nil
}

// ReadRows sends the rows of a request in the order of their keys.
func (s *service) ReadRows(req *btpb.ReadRowsRequest, stream btpb.Bigtable_ReadRowsServer) error {
	if req.GetReversed() {
		return status.Error(codes.Unimplemented, "the local Bigtable does not read in reverse order")
	}
	t, err := s.tables.find(req.GetTableName())
	if err != nil {
		return err
	}
	through, err := compile(req.GetFilter())
	if err != nil {
		return err
	}
	in, err := intervals(req.GetRows())
	if err != nil {
		return err
	}
	a := &answer{stream: stream, through: through, limit: req.GetRowsLimit()}
	if err := s.readRows(t, in, sees(req.GetFilter()), a); err != nil && !errors.Is(err, errLimit) {
		return err
	}
	return a.flush()
}

// readRows reads the cells of some families, nil for all.
func (s *service) readRows(t *table, in []interval, of []string, a *answer) (err error) {
	// Families do not change while they are read. The view then holds what they had.
	t.change.RLock()
	families, view := t.Families, s.tables.disk.View()
	t.change.RUnlock()
	defer func() { err = errors.Join(err, fault(view.Close())) }()
	if of != nil {
		families = slices.DeleteFunc(slices.Clone(families), func(f *family) bool { return !slices.Contains(of, f.Name) })
	}
	frozen := &table{ID: t.ID, Families: families}
	for _, i := range in {
		if i.single {
			err = frozen.readRow(view, i.from, a.row)
		} else {
			err = frozen.scan(view, i, a.row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readRow calls f with the cells of a row, if it has some.
func (t *table) readRow(v disk.View, key []byte, f func(key []byte, cells []cell) error) error {
	var cells []cell
	row := t.row(key)
	for _, fam := range t.Families {
		_, err := v.Get(fam.key(row), func(value []byte) (err error) {
			cells, err = decode(cells, fam, bytes.Clone(value))
			return err
		})
		if err != nil {
			return fault(err)
		}
	}
	if len(cells) == 0 {
		return nil
	}
	return f(key, cells)
}

// scan calls f with the rows of a range.
func (t *table) scan(v disk.View, in interval, f func(key []byte, cells []cell) error) (err error) {
	to := disk.After(t.prefix())
	if in.to != nil {
		to = t.row(in.to)
	}
	c, err := v.Cursor(t.row(in.from), to)
	if err != nil {
		return fault(err)
	}
	defer func() { err = errors.Join(err, fault(c.Close())) }()
	var row []byte // what the keys of the row that is being read begin with
	var cells []cell
	emit := func() error {
		if len(cells) == 0 {
			return nil
		}
		key, _, ok := disk.CutPart(row[len(t.prefix()):])
		if !ok {
			return fault(errDamaged)
		}
		read := cells
		cells = nil
		return f(key, read)
	}
	for c.Next() {
		end := bytes.Index(c.Key(), []byte{0, 1}) // the end of a part, see package disk
		if end < 0 {
			return fault(errDamaged)
		}
		if !bytes.Equal(c.Key()[:end+2], row) {
			if err := emit(); err != nil {
				return err
			}
			row = bytes.Clone(c.Key()[:end+2])
		}
		id, _ := binary.Uvarint(c.Key()[end+2:])
		fam := t.familyByID(id)
		if fam == nil {
			continue // of a family that nobody asks for, or that is being dropped
		}
		value, err := c.Value()
		if err == nil {
			cells, err = decode(cells, fam, bytes.Clone(value))
		}
		if err != nil {
			return fault(err)
		}
	}
	return emit()
}

// commits ends each row of an answer.
var commits = &btpb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true}

// errLimit ends a read that has as many rows as it asked for.
var errLimit = errors.New("enough rows")

// responseBytes is the size from which an answer is sent.
const responseBytes = 256 << 10

// answer collects rows and sends them, several at a time.
type answer struct {
	stream  btpb.Bigtable_ReadRowsServer
	through filter
	limit   int64 // 0: none
	rows    int64
	bytes   int
	resp    btpb.ReadRowsResponse
}

// row adds what the filter lets through of a row.
func (a *answer) row(key []byte, cells []cell) error {
	if cells = a.through(key, cells); len(cells) == 0 {
		return a.stream.Context().Err()
	}
	chunks := make([]btpb.ReadRowsResponse_CellChunk, len(cells))
	a.resp.Chunks = slices.Grow(a.resp.Chunks, len(cells))
	for i := range cells {
		c, chunk := &cells[i], &chunks[i]
		chunk.TimestampMicros, chunk.Value, chunk.Labels = c.ts, c.value, c.labels
		if i == 0 {
			chunk.RowKey = key
		}
		if i == 0 || c.family != cells[i-1].family {
			chunk.FamilyName = &wrapperspb.StringValue{Value: c.family.Name}
		}
		if i == 0 || !sameColumn(c, &cells[i-1]) {
			chunk.Qualifier = &wrapperspb.BytesValue{Value: []byte(c.qualifier)}
		}
		a.resp.Chunks = append(a.resp.Chunks, chunk)
		a.bytes += len(c.value) + len(c.qualifier) + len(key)
	}
	a.resp.Chunks[len(a.resp.Chunks)-1].RowStatus = commits
	if a.rows++; a.rows == a.limit {
		return errLimit
	}
	if a.bytes >= responseBytes {
		return a.flush()
	}
	return nil
}

func (a *answer) flush() error {
	if len(a.resp.Chunks) == 0 {
		return nil
	}
	err := a.stream.Send(&a.resp)
	a.resp.Chunks, a.bytes = nil, 0
	return err
}

// sampledRows is how many rows lie between two samples, on average.
const sampledRows = 100

// SampleRowKeys sends some keys of a table, with how many bytes lie before each.
func (s *service) SampleRowKeys(req *btpb.SampleRowKeysRequest, stream btpb.Bigtable_SampleRowKeysServer) error {
	t, err := s.tables.find(req.GetTableName())
	if err != nil {
		return err
	}
	t.change.RLock()
	frozen, view := &table{ID: t.ID, Families: t.Families}, s.tables.disk.View()
	t.change.RUnlock()
	var last, sent []byte
	var before, offset int64 // bytes before the last row, and before the next one
	send := func() error {
		sent = last
		return stream.Send(&btpb.SampleRowKeysResponse{RowKey: last, OffsetBytes: before})
	}
	err = frozen.scan(view, interval{}, func(key []byte, cells []cell) error {
		last, before = key, offset
		for _, c := range cells {
			offset += int64(len(c.value))
		}
		if rand.IntN(sampledRows) == 0 {
			return send()
		}
		return nil
	})
	if err == nil && last != nil && !bytes.Equal(sent, last) {
		err = send()
	}
	if err = errors.Join(err, fault(view.Close())); err != nil {
		return err
	}
	// The empty key is the end of the table.
	return stream.Send(&btpb.SampleRowKeysResponse{OffsetBytes: offset})
}
