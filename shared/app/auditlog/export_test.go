package auditlog

import "context"

// TimeOf is timeOf.
var TimeOf = timeOf

// ReadOf is Read with another number of entries that it reads at most.
func ReadOf(ctx context.Context, from Entries, app string, q Query, most int) ([]Entry, string, error) {
	return q.read(ctx, from, app, most)
}
