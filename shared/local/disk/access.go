package disk

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// engine is Pebble, and batch, snapshot and iterator are what comes from it. The exported types
// hold these in place of Pebble's own: each package that uses a Disk would compile the generic
// half of Pebble once more.
type (
	engine interface {
		reader
		batch() batch
		snapshot() snapshot
		syncLog() error
		Flush() error
		Checkpoint(dir string, _ ...pebble.CheckpointOption) error
		Close() error
	}
	reader interface {
		Get(key []byte) (value []byte, closer io.Closer, err error)
	}
	batch interface {
		Set(key, value []byte, _ *pebble.WriteOptions) error
		Merge(key, value []byte, _ *pebble.WriteOptions) error
		Delete(key []byte, _ *pebble.WriteOptions) error
		DeleteRange(from, to []byte, _ *pebble.WriteOptions) error
		Commit(*pebble.WriteOptions) error
		Close() error
	}
	snapshot interface {
		reader
		iterator(from, to []byte) (iterator, error)
		Close() error
	}
	iterator interface {
		First() bool
		Next() bool
		Key() []byte
		ValueAndErr() ([]byte, error)
		Close() error
	}
)

type pebbleEngine struct{ *pebble.DB }

func (e pebbleEngine) batch() batch       { return e.NewBatch() }
func (e pebbleEngine) snapshot() snapshot { return pebbleSnapshot{e.NewSnapshot()} }

// syncLog returns once the log is on the disk up to here.
func (e pebbleEngine) syncLog() error { return e.LogData(nil, pebble.Sync) }

type pebbleSnapshot struct{ *pebble.Snapshot }

func (s pebbleSnapshot) iterator(from, to []byte) (iterator, error) {
	return s.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
}

// Batch is a number of changes that are made together, or not at all.
type Batch struct{ b batch }

// NewBatch returns an empty batch.
func (d *Disk) NewBatch() Batch { return Batch{d.db.batch()} }

// Set sets the value of a key. The batch keeps neither slice.
func (b Batch) Set(key, value []byte) { _ = b.b.Set(key, value, nil) } // fails only after a commit

// Join adds a part to the value of a key, without a look at it.
func (b Batch) Join(key, part []byte) { _ = b.b.Merge(key, part, nil) }

// Delete deletes a key, which need not exist.
func (b Batch) Delete(key []byte) { _ = b.b.Delete(key, nil) }

// DeleteRange deletes the keys in [from, to).
func (b Batch) DeleteRange(from, to []byte) { _ = b.b.DeleteRange(from, to, nil) }

// Commit makes the changes of a batch, which is used up. The end of the process does not
// lose them once it has returned nil, or with Settings.Sync once Sync has. ErrFull says that
// nothing was changed.
func (d *Disk) Commit(b Batch) error {
	return d.commit(b, d.sync)
}

// CommitLater is Commit without waiting for the system. The end of the process may lose
// the changes, but none that is followed by a Commit.
func (d *Disk) CommitLater(b Batch) error {
	return d.commit(b, pebble.NoSync)
}

func (d *Disk) commit(b Batch, how *pebble.WriteOptions) error {
	defer b.b.Close()
	if err := d.room(); err != nil {
		return err
	}
	if err := b.b.Commit(how); err != nil {
		return fmt.Errorf("write the data folder: %w", err)
	}
	d.committed.Add(1)
	return nil
}

// View is the content of the folder at one moment. Close it.
type View struct{ s snapshot }

// View returns the content as it is now.
func (d *Disk) View() View { return View{d.db.snapshot()} }

// Close ends the view.
func (v View) Close() error { return v.s.Close() }

// Get calls f with the value of a key, which is valid until f returns, or returns
// false.
func (v View) Get(key []byte, f func(value []byte) error) (bool, error) { return get(v.s, key, f) }

// Get is that of a View of this moment.
func (d *Disk) Get(key []byte, f func(value []byte) error) (bool, error) { return get(d.db, key, f) }

func get(r reader, key []byte, f func([]byte) error) (bool, error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the data folder: %w", err)
	}
	return true, errors.Join(f(value), closer.Close())
}

// Cursor goes through the keys of a range in their order. Close it.
type Cursor struct {
	i     iterator
	begun bool
}

// Cursor returns one that stands before the first key of [from, to).
func (v View) Cursor(from, to []byte) (*Cursor, error) {
	i, err := v.s.iterator(from, to)
	if err != nil {
		return nil, fmt.Errorf("read the data folder: %w", err)
	}
	return &Cursor{i: i}, nil
}

// Next moves to the next key and reports whether there is one.
func (c *Cursor) Next() bool {
	if !c.begun {
		c.begun = true
		return c.i.First()
	}
	return c.i.Next()
}

// Key returns the key, which is valid until the cursor moves.
func (c *Cursor) Key() []byte { return c.i.Key() }

// Value returns the value, which is valid until the cursor moves.
func (c *Cursor) Value() ([]byte, error) {
	value, err := c.i.ValueAndErr()
	if err != nil {
		return nil, fmt.Errorf("read the data folder: %w", err)
	}
	return value, nil
}

// Close ends the cursor and returns the fault that ended it early, if one did.
func (c *Cursor) Close() error {
	if err := c.i.Close(); err != nil {
		return fmt.Errorf("read the data folder: %w", err)
	}
	return nil
}

// Each calls f with all keys that begin with a prefix, and their values. The slices are
// valid until f returns.
func (d *Disk) Each(prefix []byte, f func(key, value []byte) error) (err error) {
	v := d.View()
	defer func() { err = errors.Join(err, v.Close()) }()
	var end []byte
	if len(prefix) > 0 {
		end = After(prefix)
	}
	c, err := v.Cursor(prefix, end)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for c.Next() {
		value, err := c.Value()
		if err == nil {
			err = f(c.Key(), value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
