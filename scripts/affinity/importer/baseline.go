package importer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ShownObject is an object at a place of a list that a shop has shown.
type ShownObject struct {
	Placement string // empty: the list of all other places
	ObjectID  string
	Position  float64 // from 1; an average may be a fraction
}

// ReadBaseline reads the lists that a shop has shown: CSV with the columns objectID and
// position, and placement or category if there are several lists, or objects of JSON with
// such members. It passes on each object in the order of the file, and fails if a line is
// bad.
func ReadBaseline(ctx context.Context, src *Source, progress io.Writer, add func(ShownObject)) error {
	bad := &tally{}
	n := 0
	src.ofObjects()
	err := readLines(ctx, src, "positions", progress, bad, parseShown, func(o ShownObject) {
		n++
		add(o)
	})
	return bad.ended(err, n, src, "positions")
}

func parseShown(text []byte) (o ShownObject, err error) {
	if fault := objectFault(line{text: text}); fault != "" {
		return o, errors.New(fault)
	}
	var m members
	if err := json.Unmarshal(text, &m); err != nil {
		return o, err
	}
	var known bool
	if o.ObjectID, known = idText(m["objectID"]); !known || o.ObjectID == "" {
		return o, errors.New("objectID must be a text")
	}
	placement, category := m["placement"], m["category"]
	switch {
	case placement != nil && category != nil:
		return o, errors.New("placement and category name the same: leave one out")
	case placement == nil:
		placement = category
	}
	if placement != nil && string(placement) != "null" {
		if o.Placement, known = idText(placement); !known {
			return o, fmt.Errorf("placement must be a text, got %s", placement)
		}
		o.Placement = strings.TrimSpace(o.Placement)
	}
	position, given := m["position"]
	if !given {
		return o, errors.New("position is missing: it is the place of the object in the list, from 1")
	}
	if json.Unmarshal(position, &o.Position) != nil || o.Position < 1 {
		return o, fmt.Errorf("position must be a number from 1, got %s", position)
	}
	return o, nil
}
