package importer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// How much of a catalog one request carries at most.
const (
	batchObjects = min(1000, api.MaxActions)
	batchBytes   = min(1_500_000, api.MaxCatalogBody)
)

// objects is one import of objects.
type objects struct {
	im     *Importer
	src    *Source
	m      *meter
	client *client.Client
	index  string
	batch  []line // to be sent
	size   int    // of batch, in bytes
	answer ObjectsAnswer
	seen   map[[16]byte]struct{} // objectIDs that are stored
}

// ObjectsAnswer counts what an import of objects did.
type ObjectsAnswer struct {
	Stored int
	// NotNumbers and Dropped are those of api.BatchAnswer.
	NotNumbers, Dropped map[string]int
	// Notes are those of the source.
	Notes []string
}

// Objects puts all objects of src into the index, one request after the other: of two
// objects with one id the later one stays. It returns what was stored, also with an error.
func (im *Importer) Objects(ctx context.Context, src *Source, index string) (ObjectsAnswer, error) {
	src.ofObjects()
	m := newMeter(im.progress, "objects", src)
	defer m.finish()
	im.begin()
	o := newObjects(im, src, m, im.retrying(m))
	o.index = index
	err := o.run(ctx)
	o.answer.Notes = src.notes()
	return o.answer, err
}

func newObjects(im *Importer, src *Source, m *meter, c *client.Client) *objects {
	return &objects{im: im, src: src, m: m, client: c, seen: map[[16]byte]struct{}{},
		answer: ObjectsAnswer{NotNumbers: map[string]int{}, Dropped: map[string]int{}}}
}

func (o *objects) run(ctx context.Context) error {
	for {
		l, err := o.src.next()
		if err != nil {
			if failed := o.flush(ctx); failed != nil {
				return failed
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		o.im.lines.add(Tally{Read: 1})
		if reason := objectFault(l); reason != "" {
			o.im.lines.refuse(o.m, o.src, l.number, reason)
			continue
		}
		l.text = bytes.Clone(l.text)
		if err := o.add(ctx, l); err != nil {
			return err
		}
	}
}

// add sends a line with others.
func (o *objects) add(ctx context.Context, l line) error {
	if len(o.batch) == batchObjects || o.size+len(l.text) > batchBytes {
		if err := o.flush(ctx); err != nil {
			return err
		}
	}
	o.batch, o.size = append(o.batch, l), o.size+len(l.text)
	return nil
}

// flush sends the lines that were added.
func (o *objects) flush(ctx context.Context) error {
	if len(o.batch) == 0 {
		return nil
	}
	batch := o.batch
	o.batch, o.size = nil, 0
	if err := o.send(ctx, batch); err != nil {
		return err
	}
	o.im.through = batch[len(batch)-1].number
	return nil
}

// objectFault says why a line cannot be an object, "" if it may be one. An object
// needs an id of its own: else importing it again would add another.
func objectFault(l line) string {
	if reason := l.reason(); reason != "" {
		return reason
	}
	var object map[string]json.RawMessage // a struct would take "OBJECTID" too, which the engine ignores
	if err := json.Unmarshal(l.text, &object); err != nil {
		if bytes.HasPrefix(l.text, []byte("[")) {
			return "a JSON array: give one object per line (jq -c '.[]' converts it)"
		}
		return "not a JSON object, as each line of a catalog is: " + err.Error()
	}
	if id := object["objectID"]; len(id) == 0 || string(id) == "null" {
		return "objectID is missing"
	}
	return ""
}

// send sends some objects. If the engine refuses them it sends each half, so that
// the bad ones are found and the others are stored.
func (o *objects) send(ctx context.Context, batch []line) error {
	if o.im.Checks() {
		return o.check(batch)
	}
	actions := make([]api.BatchAction, len(batch))
	for i, l := range batch {
		actions[i] = api.BatchAction{Action: api.ActionAddObject, Body: l.text}
	}
	answer, err := o.client.Catalog().Batch(ctx, o.index, actions...)
	if refused := refusal(err); refused != nil {
		switch refused.Status {
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
			return o.split(ctx, batch, refused)
		}
	}
	if err != nil {
		return fmt.Errorf("import objects, lines %d to %d of %s: %w", batch[0].number, batch[len(batch)-1].number,
			o.src.name, err)
	}
	addCounts(o.answer.NotNumbers, answer.NotNumbers)
	addCounts(o.answer.Dropped, answer.Dropped)
	o.count(batch)
	return nil
}

func addCounts(to, further map[string]int) {
	for name, n := range further {
		to[name] += n
	}
}

// check takes what the catalog would take.
func (o *objects) check(batch []line) error {
	var good []line
	for _, l := range batch {
		if _, err := decodeObject(l.text); err != nil {
			o.im.lines.refuse(o.m, o.src, l.number, err.Error())
		} else {
			good = append(good, l)
		}
	}
	o.count(good)
	return nil
}

// count counts objects that are stored.
func (o *objects) count(batch []line) {
	t := Tally{}
	for _, l := range batch {
		var object struct {
			ObjectID json.RawMessage `json:"objectID"`
		}
		_ = json.Unmarshal(l.text, &object) // objectFault has read it
		if remember(o.seen, sha128(o.index+"\n"+strings.Trim(string(object.ObjectID), `"`))) {
			t.Imported++
		} else {
			t.Equal++
		}
	}
	o.answer.Stored += len(batch)
	o.im.lines.add(t)
	o.m.add(len(batch))
}

func (o *objects) split(ctx context.Context, batch []line, refused *api.Error) error {
	if len(batch) == 1 {
		o.im.lines.refuse(o.m, o.src, batch[0].number, refused.Error())
		return nil
	}
	middle := len(batch) / 2
	if err := o.send(ctx, batch[:middle]); err != nil {
		return err
	}
	return o.send(ctx, batch[middle:])
}
