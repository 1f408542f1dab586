package query

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/rank/segment"
)

// StoreSizes counts the users of saved segments and stores each number as the size of
// the day. It leaves out a segment whose half-life the strategy does not have any more.
// It is the one method that writes.
func (r *Reader) StoreSizes(ctx context.Context, app config.App, saved []config.SavedSegment) error {
	day := r.now().UTC().Format(time.DateOnly)
	for _, s := range saved {
		where, err := segment.Parse([]byte(s.Where))
		if err != nil {
			return fmt.Errorf("size of segment %q: %w", s.Name, err)
		}
		page, err := r.Page(ctx, app, where, 0, "")
		if errors.As(err, new(*fault.Error)) {
			continue
		}
		if err == nil {
			err = r.store.Segments.SetSegmentSize(ctx, app.ID, s.Name, day, page.Total)
		}
		if err != nil {
			return fmt.Errorf("size of segment %q: %w", s.Name, err)
		}
	}
	return nil
}
