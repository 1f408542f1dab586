package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// How much of a catalogue goes into one request.
const (
	batchObjects = 1000
	batchBytes   = 1_500_000
)

// objects puts all objects of src into the index, one request after the other: of two with one id the later must win. It returns how
// many went in, also with an error.
func (im *importer) objects(ctx context.Context, src *source, m *meter, index string) (int, error) {
	path := "/1/indexes/" + url.PathEscape(index) + "/batch"
	went := 0
	var batch []line
	size := 0
	flush := func() error {
		n, err := im.batch(ctx, batch, src, m, path)
		went += n
		batch, size = nil, 0
		return err
	}
	for {
		l, err := src.next()
		if err != nil {
			if failed := flush(); failed != nil {
				return went, failed
			}
			if errors.Is(err, io.EOF) {
				return went, nil
			}
			return went, err
		}
		if reason := objectFault(l); reason != "" {
			im.bad.add(m, src, l.number, reason)
			continue
		}
		if len(batch) == batchObjects || size+len(l.text) > batchBytes {
			if err := flush(); err != nil {
				return went, err
			}
		}
		l.text = bytes.Clone(l.text)
		batch, size = append(batch, l), size+len(l.text)
	}
}

// objectFault says why a line can be no object, "" when it may be one. Without an id of its own, importing it again would add it again.
func objectFault(l line) string {
	if l.tooLong {
		return fmt.Sprintf("the line is longer than %d bytes", maxLine)
	}
	var object struct {
		ObjectID json.RawMessage `json:"objectID"`
	}
	if err := json.Unmarshal(l.text, &object); err != nil {
		if bytes.HasPrefix(l.text, []byte("[")) {
			return "a JSON array, where one object a line is needed (jq -c '.[]' makes that of it)"
		}
		return "no JSON object: " + err.Error()
	}
	if len(object.ObjectID) == 0 {
		return "objectID is missing"
	}
	return ""
}

// batch sends some objects; where the engine refuses them together it tries each half, so that the bad ones are found and the rest go in.
func (im *importer) batch(ctx context.Context, objects []line, src *source, m *meter, path string) (int, error) {
	if len(objects) == 0 {
		return 0, nil
	}
	err := im.wait.retry(ctx, m.waiting, func() error {
		_, err := im.c.do(ctx, http.MethodPost, path, batchBody(objects))
		return err
	})
	switch statusOf(err) {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		if len(objects) == 1 {
			im.bad.add(m, src, objects[0].number, answerOf(err))
			return 0, nil
		}
		middle := len(objects) / 2
		first, err := im.batch(ctx, objects[:middle], src, m, path)
		if err != nil {
			return first, err
		}
		second, err := im.batch(ctx, objects[middle:], src, m, path)
		return first + second, err
	}
	if err != nil {
		return 0, fmt.Errorf("import objects, lines %d to %d of %s: %w", objects[0].number, objects[len(objects)-1].number, src.name, err)
	}
	m.add(len(objects))
	return len(objects), nil
}

func batchBody(objects []line) []byte {
	body := []byte(`{"requests":[`)
	for i, o := range objects {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"action":"addObject","body":`...)
		body = append(append(body, o.text...), '}')
	}
	return append(body, `]}`...)
}
