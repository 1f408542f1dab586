// Package segmentjobs makes what builds, exports and answers questions about segments
// from a function's backends. It is separate from package jobs, so that a function that
// serves segments links no other kind of job.
package segmentjobs

import (
	"context"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentbuild"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentexport"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/serve/query"
)

// Segmenting is what works on segments.
type Segmenting struct {
	Segments *segmentbuild.Runner
	// Exports write the users of segments to files, and Query answers questions about
	// segments.
	Exports *segmentexport.Runner
	Query   *query.Reader
}

// New returns what works on segments. runner returns the runner of the jobs in a collection.
func New(b backend.Base, runner func(collection job.Collection) job.Runner, profiles *profile.Engine) Segmenting {
	var reader *query.Reader
	builds := segmentbuild.New(runner(segmentbuild.Collection), segmentbuild.Work{
		Store: b.Store, Profiles: profiles, Sizes: func(ctx context.Context, app config.App) error {
			saved, err := b.Config.SavedSegments(ctx, app.ID)
			if err != nil {
				return err
			}
			return reader.StoreSizes(ctx, app, saved)
		},
	})
	reader = query.New(b.Store, profiles, builds, b.Now, b.Log)
	return Segmenting{
		Segments: builds, Query: reader,
		Exports: segmentexport.New(runner(segmentexport.Collection), reader,
			func(region string) segmentexport.Files { return b.Store.In(region).Segments }),
	}
}
