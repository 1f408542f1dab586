package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// detailed keeps documents without details in Jobs, and the details apart. A write stores
// the details first, under a new version, and then the document, which names the version.
// A process that dies between the two leaves a version that no document names: the end of
// the row, or age, removes it. Only the version that a document named before, and those
// that it never named, are deleted, and only once the document is written: a request
// whose answer is lost may have made the document name any version of its attempts.
type detailed struct {
	Jobs
	apart      Details
	collection string
}

// Detailed returns a store that keeps in jobs only what names no user. What may do so it
// keeps in apart, and joins both when it reads. jobs are those of the collection.
func Detailed(jobs Jobs, apart Details, collection Collection) Jobs {
	return &detailed{jobs, apart, collection.Name}
}

// errDetailsLost means that the details of a shard that has not ended are stored nowhere: its job
// cannot go on.
var errDetailsLost = errors.New("the details are lost")

// errMoved means that a document has changed before its details were read.
var errMoved = errors.New("the document names another version now")

// maxReads bounds how often a list is read again of which a document has left.
const maxReads = 20

// rowOf names the row of a job, and shardRow those of its shards.
func (d *detailed) rowOf(id string) string { return d.collection + "," + id + "," }

func (d *detailed) jobRow(j Job) string { return d.rowOf(j.ID) }

func (d *detailed) shardRow(id string) func(Shard) string {
	return func(s Shard) string { return d.rowOf(id) + fmt.Sprintf("%07d", s.N) }
}

// put stores the details of a document, and returns the document that names them. The
// version is empty if there are none.
func put[T divided[T]](ctx context.Context, d Details, app, row string, document T) (T, string, error) {
	own, _ := document.details()
	if own.empty() {
		return document.with(details{}, ""), "", nil
	}
	value, err := json.Marshal(own)
	if err != nil {
		return document, "", fmt.Errorf("encode the details of %s: %w", row, err)
	}
	version := newVersion()
	err = d.PutJobDetails(ctx, app, document.region(), row, version, document.over(), value)
	return document.with(details{}, version), version, err
}

// readOne reads a document until its details are there too.
func readOne[T divided[T]](ctx context.Context, d Details, app string, row func(T) string,
	read func() (T, error)) (T, error) {
	for before := ""; ; {
		document, err := read()
		if err != nil {
			return document, err
		}
		all, missing, err := joined(ctx, d, app, row, []T{document})
		if err != nil {
			return document, err
		}
		if len(missing) == 0 {
			return all[0], nil
		}
		_, version := document.details()
		if version == before {
			return withoutDetails(row, document)
		}
		before = version
	}
}

// withoutDetails returns what is left of a document whose details are lost: it names the
// version still, and nobody has stored another.
func withoutDetails[T divided[T]](row func(T) string, document T) (T, error) {
	left, ok := document.lost()
	if !ok {
		return left, fmt.Errorf("%s: %w", row(document), errDetailsLost)
	}
	return left, nil
}

// readAll reads a list of documents with their details. again reads one of them. If it is
// gone, or fits no more, the list is read again.
func readAll[T divided[T]](ctx context.Context, d Details, app string, row func(T) string, list func() ([]T, error),
	again func(T) (T, error), fits func(T) bool) ([]T, error) {
	for range maxReads {
		documents, err := list()
		if err != nil {
			return nil, err
		}
		all, missing, err := joined(ctx, d, app, row, documents)
		if err != nil {
			return nil, err
		}
		left := false
		for _, i := range missing {
			all[i], err = again(documents[i])
			if errors.Is(err, ErrNotFound) || err == nil && !fits(all[i]) {
				left = true
			} else if err != nil {
				return nil, err
			}
		}
		if !left {
			return all, nil
		}
	}
	return nil, fmt.Errorf("read jobs of app %q: they changed at each of %d attempts", app, maxReads)
}

// changing is a change of a document and its details.
type changing[T divided[T]] struct {
	apart Details
	app   string
	row   func(T) string
	apply func(*T) error

	result T        // after the change, with its details
	name   string   // of its row
	before string   // the version that the document named
	missed string   // a version that was not stored
	after  string   // the version that the document names after the change
	stored []string // by all attempts
}

// change runs the change. update is the compare-and-set of the document.
func (c *changing[T]) change(ctx context.Context, update func(func(*T) error) (T, error)) (T, error) {
	for {
		written, err := update(func(document *T) error { return c.attempt(ctx, document) })
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return written, err
		}
		c.tidy(ctx, written.over())
		now, _ := c.result.details()
		return written.with(now, ""), nil
	}
}

// attempt changes the document that is stored now, and stores its new details.
func (c *changing[T]) attempt(ctx context.Context, document *T) error {
	_, version := (*document).details()
	c.name, c.before = c.row(*document), version
	all, missing, err := joined(ctx, c.apart, c.app, c.row, []T{*document})
	if err != nil {
		return err
	}
	c.result = all[0]
	if len(missing) > 0 {
		if version != c.missed {
			c.missed = version
			return errMoved
		}
		if c.result, err = withoutDetails(c.row, *document); err != nil {
			return err
		}
	}
	was, _ := c.result.details()
	if err := c.apply(&c.result); err != nil {
		return err
	}
	now, _ := c.result.details()
	if now.equal(was) && len(missing) == 0 && !c.result.over() {
		c.after = version
		*document = c.result.with(details{}, version)
		return nil
	}
	*document, c.after, err = put(ctx, c.apart, c.app, c.name, c.result)
	c.stored = append(c.stored, c.after)
	return err
}

// tidy deletes the versions that no document names any more. What it leaves after an error
// goes with the end of the row, or with age.
func (c *changing[T]) tidy(ctx context.Context, ended bool) {
	region, unnamed := c.result.region(), map[string]bool{c.before: true}
	for _, version := range c.stored {
		unnamed[version] = true
	}
	delete(unnamed, "")
	if ended && len(unnamed) > 0 {
		_ = c.apart.DropOpenJobDetails(ctx, c.app, region, c.name)
	}
	delete(unnamed, c.after)
	if len(unnamed) > 0 && (!ended || len(c.stored) > 1) {
		_ = c.apart.DropJobDetails(ctx, c.app, region, c.name, slices.Sorted(maps.Keys(unnamed))...)
	}
}

// create stores a new document. read reads the one that exists.
func create[T divided[T]](ctx context.Context, d Details, app, row string, document T, create func(T) error,
	read func() (T, error)) error {
	document, version, err := put(ctx, d, app, row, document)
	if err != nil {
		return err
	}
	err = create(document)
	if version == "" || !errors.Is(err, ErrExists) {
		return err
	}
	// The document may be that of an attempt whose answer was lost.
	if there, failed := read(); failed == nil {
		if _, named := there.details(); named != version {
			_ = d.DropJobDetails(ctx, app, document.region(), row, version)
		}
	}
	return err
}
