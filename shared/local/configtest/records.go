package configtest

import (
	"maps"

	"github.com/affinityengine/affinity/shared/app/documents"
)

// Records keep records in memory, as a folder keeps them on a disk.
type Records map[string][]byte

var _ documents.Records = Records{}

// Load calls f with all records.
func (r Records) Load(f func(name string, value []byte) error) error {
	for name, value := range maps.Clone(r) {
		if err := f(name, value); err != nil {
			return err
		}
	}
	return nil
}

// Save sets and deletes records.
func (r Records) Save(records ...documents.Record) error {
	for _, c := range records {
		if c.Value == nil {
			delete(r, c.Name)
		} else {
			r[c.Name] = c.Value
		}
	}
	return nil
}
