package measure

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"

	"cloud.google.com/go/bigtable"
	"google.golang.org/protobuf/proto"

	"github.com/affinityengine/affinity/scripts/bench/measure/countspb"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// encoding is a form of the value of a narrow row that no app can have. It is measured
// for comparison, with the library that a Go program would use.
type encoding struct {
	encode func([]filterCount) ([]byte, error)
	decode func() decoder
}

var encodings = map[string]encoding{
	NarrowProto: {encodeProto, narrowProto},
	NarrowGob:   {encodeGob, narrowGob},
}

func encodeProto(list []filterCount) ([]byte, error) {
	m := &countspb.Counts{}
	for _, c := range list {
		m.Counts = append(m.Counts, &countspb.Count{Facet: c.FacetName, Value: c.FacetValue, Count: int32(c.Count)})
	}
	return proto.Marshal(m)
}

// narrowProto decodes Protocol Buffers with generated code, into a reused message.
func narrowProto() decoder {
	m := &countspb.Counts{}
	return func(sections map[string]affinity.Section, value []byte, sc *affinity.Scorer) error {
		if err := proto.Unmarshal(value, m); err != nil {
			return err
		}
		for _, c := range m.Counts {
			if section, ok := sections[c.Facet]; ok {
				sc.Add(section, []byte(c.Value), int(c.Count))
			}
		}
		return nil
	}
}

// encodeGob writes a stream of its own for each value: it also describes the type.
func encodeGob(list []filterCount) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(list)
	return b.Bytes(), err
}

// narrowGob decodes encoding/gob, with a decoder for each value as its stream needs.
func narrowGob() decoder {
	var list []filterCount
	return func(sections map[string]affinity.Section, value []byte, sc *affinity.Scorer) error {
		list = list[:0]
		if err := gob.NewDecoder(bytes.NewReader(value)).Decode(&list); err != nil {
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

// encodedTables are narrow rows with values in another encoding.
func encodedTables(name string) tables {
	e := encodings[name]
	load := func(ctx context.Context, c *client, d *dataset, tail int) error {
		if err := loadPublished(ctx, c, d, tail); err != nil {
			return err
		}
		return recode(ctx, c, d, e)
	}
	return tables{[]string{name}, load, func(_ string, c *client, d *dataset, _ int) reader {
		return &narrowReader{c: c, d: d, compiled: affinity.Compile(d.strategy), decode: e.decode}
	}}
}

// recode replaces the JSON of published rows by another encoding.
func recode(ctx context.Context, c *client, d *dataset, e encoding) error {
	table := c.raw.Open(store.TableEventsNarrow)
	return eachShard(ctx, d.users, d.logShard(), func() func(context.Context, span) error {
		return func(ctx context.Context, sp span) error {
			var keys []string
			var writes []*bigtable.Mutation
			var fault error
			err := table.ReadRows(ctx, rowsOf(d, sp), func(r bigtable.Row) bool {
				keys, writes = append(keys, r.Key()), append(writes, bigtable.NewMutation())
				for family, items := range r {
					for _, item := range items {
						var list []filterCount
						err := json.Unmarshal(item.Value, &list)
						value, err2 := e.encode(list)
						fault = errors.Join(fault, err, err2)
						writes[len(writes)-1].Set(family, item.Column[len(family)+1:], item.Timestamp, value)
					}
				}
				return fault == nil
			})
			if err := errors.Join(err, fault); err != nil || len(keys) == 0 {
				return err
			}
			faults, err := table.ApplyBulk(ctx, keys, writes)
			if err := errors.Join(append(faults, err)...); err != nil {
				return fmt.Errorf("write values in another encoding: %w", err)
			}
			return nil
		}
	})
}
