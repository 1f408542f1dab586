package disk

import "github.com/affinityengine/affinity/shared/app/documents"

// Records are the records of one space.
type Records struct {
	disk  *Disk
	space Space
}

var _ documents.Records = Records{}

// Records returns those of a space that holds nothing else.
func (d *Disk) Records(space Space) Records { return Records{d, space} }

// Load calls f with all records.
func (r Records) Load(f func(name string, value []byte) error) error {
	return r.LoadPrefix("", f)
}

// LoadPrefix calls f with the records whose names begin with a prefix.
func (r Records) LoadPrefix(prefix string, f func(name string, value []byte) error) error {
	return r.disk.Each(append([]byte{byte(r.space)}, prefix...),
		func(key, value []byte) error { return f(string(key[1:]), value) })
}

// Save sets and deletes records, see Disk.Commit.
func (r Records) Save(records ...documents.Record) error { return r.disk.Commit(r.batch(records)) }

// SaveLater is Save without waiting, see Disk.CommitLater.
func (r Records) SaveLater(records ...documents.Record) error {
	return r.disk.CommitLater(r.batch(records))
}

func (r Records) batch(records []documents.Record) Batch {
	b := r.disk.NewBatch()
	for _, c := range records {
		key := append([]byte{byte(r.space)}, c.Name...)
		if c.Value == nil {
			b.Delete(key)
		} else {
			b.Set(key, c.Value)
		}
	}
	return b
}
