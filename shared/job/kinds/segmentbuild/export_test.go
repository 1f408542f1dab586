package segmentbuild

import (
	"context"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// Pack packs all users of an app as a shard of a build does, whichever of them a recompute
// with these options computes.
func Pack(ctx context.Context, r *Runner, app config.App, o profile.RecomputeOptions) (job.Progress, error) {
	t := &task{Work: r.work, app: app, params: Params{Generation: "pack"}}
	return t.pack(ctx, store.Range{}, o, func(job.Progress) error { return nil })
}
