package store

import (
	"context"
	"errors"

	"github.com/affinityengine/affinity/shared/score/schema"
)

// CompleteObjects gives kind and objects to rows that lack them, because an older
// version wrote them: it reads the originals of these rows, and of no others. An
// event whose original does not decode, or is gone, counts as one without objects.
// Afterwards every row has objects.
func (l Log) CompleteObjects(ctx context.Context, rows []*LogRow) error {
	missing := map[string]*LogRow{}
	var keys []string
	for _, row := range rows {
		if _, ok := row.Objects(); !ok {
			row.objects = schema.Objects{}.Append(nil)
			missing[row.key] = row
			keys = append(keys, row.key)
		}
	}
	return l.entries(ctx, l.layout.Read, keys, column(familyOriginal, columnOriginal), func(e Entry) error {
		if o, err := objectsOf(e.Original); err == nil {
			missing[e.Key()].objects = o.Append(nil)
		}
		return nil
	})
}

// Objects returns the kind and the objects of a complete row: those of their cell
// or, if an older version wrote the row, those of the original. If neither can be
// read, it returns an error, and the event counts as one without objects.
func (e Entry) Objects() (schema.Objects, error) {
	if o, ok := e.LogRow.Objects(); ok {
		return o, nil
	}
	return objectsOf(e.Original)
}

func objectsOf(original []byte) (schema.Objects, error) {
	if len(original) == 0 {
		return schema.Objects{}, errors.New("it is empty")
	}
	o, err := schema.ParseOriginal(original)
	if err != nil {
		return schema.Objects{}, err
	}
	return o.Objects()
}
