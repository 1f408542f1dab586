package catalog

import (
	"net/http"

	"github.com/affinityengine/affinity/shared/api"
)

// NewGrouped is New with another size of the records that a batch merges at a time.
func NewGrouped(b Backends, groupBytes int) http.Handler {
	return newSized(b, groupBytes, api.MaxObjectsRead)
}

// NewReading is New with another number of objects that a page of a list reads.
func NewReading(b Backends, mostRead int) http.Handler { return newSized(b, groupBytes, mostRead) }
