// Package segmentexport writes the users of a saved segment to a file: a line of JSON
// for each, with their token and the score of the first filter. The file lies in pieces
// in the table segments, whose rows Bigtable drops after 7 days. If each user of the app has a region of their
// own, each region has a file of the users who lived there, of the same name.
//
// A job is one shard, whose task finds all users as of one instant and writes a file of
// its own: two deliveries of the task may run at once. The result of the job names the
// file. Package job runs the jobs, which lie in a collection of this package:
//
//	apps/{app}/segmentExports/{id}
package segmentexport

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/serve/query"
	"github.com/affinityengine/affinity/shared/store"
)

// Collection names the collection of the jobs under an app.
var Collection = job.NewCollection[Params, Counts]("segmentExports")

// Counts counts the work of a job.
type Counts struct {
	Users int64 // in the file
}

// Kept is how long a file is kept.
const Kept = 7 * 24 * time.Hour

// Params are the parameters of a job.
type Params struct {
	Segment string `firestore:"segment"`
	Where   string `firestore:"where"` // the condition at the start of the job, as JSON
}

var _ job.Params = Params{}

// LogAttrs returns nothing: names of segments are the app's own.
func (Params) LogAttrs() []slog.Attr { return nil }

// Result is what a job has found.
type Result struct {
	Users int64     `json:"users"`
	AsOf  time.Time `json:"asOf"`
	// File names the file in the store.
	File string `json:"file"`
	// Regions are those that have a file, for store.Store.In, in the order in which they are read.
	Regions []string `json:"regions"`
}

// Source finds the users of a segment.
type Source interface {
	Each(ctx context.Context, app config.App, where segment.Condition, fn func(query.User) error) (asOf int64, err error)
}

// Files keeps the files.
type Files interface {
	WriteExportChunk(ctx context.Context, app, file string, n int, chunk []byte) error
	EndExport(ctx context.Context, app, file string, chunks, lines int) error
}

var (
	_ Source = (*query.Reader)(nil)
	_ Files  = store.Segments{}
)

// Runner starts exports and runs their tasks. It is safe for concurrent use.
type Runner struct{ *job.Runner }

// New returns the runner. files returns what keeps the files of a region. It sets the name, the work and the
// users of r.
func New(r job.Runner, source Source, files func(region string) Files) *Runner {
	r.Name, r.Work, r.Users = "segmentexport", work{source: source, files: files}, nil
	return &Runner{job.New(r)}
}

// Start starts the export of a segment.
func (r *Runner) Start(ctx context.Context, appID string, s config.SavedSegment) (job.Job, error) {
	app, err := r.Config.App(ctx, appID)
	if err != nil {
		return job.Job{}, fmt.Errorf("start segmentexport: %w", err)
	}
	j, err := r.Create(ctx, job.Job{App: appID, ID: job.NewID("export", r.Now()), Concurrency: 1,
		Params: Params{s.Name, s.Where}}, 0)
	if err != nil {
		return job.Job{}, err
	}
	return j, r.EnqueuePlan(ctx, j, app, 0)
}

// Result returns what a job has found, or job.ErrNotFound if it is not done.
func (r *Runner) Result(ctx context.Context, j job.Job) (Result, error) {
	var result Result
	if j.State != job.Done {
		return result, fmt.Errorf("result of %s: %w", j.ID, job.ErrNotFound)
	}
	shard, err := r.Jobs.Shard(ctx, j.App, j.ID, 0)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal([]byte(shard.Result), &result); err != nil {
		return result, fmt.Errorf("decode the result of %s: %w", j.ID, err)
	}
	return result, nil
}

// part names the one shard of a job.
const part = "segment"

// work finds the users and writes the file.
type work struct {
	job.Plain
	source Source
	files  func(region string) Files
}

var _ job.Continued = work{}

// Following returns the shard over the segment.
func (work) Following(_ context.Context, _ job.Job, last job.Shard) ([]job.Shard, error) {
	if last.Part == part {
		return nil, nil
	}
	return []job.Shard{{Part: part}}, nil
}

// Process writes the file. It returns the reason why it cannot at the moment as an
// error, so that the task is tried again: the lists may be under way.
func (w work) Process(ctx context.Context, j job.Job, app config.App, shard job.Shard, _ time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	name, lines := j.ID+"-"+strings.ToLower(rand.Text()[:12]), 0
	regions, files := app.UserRegions(), map[string]*file{}
	for _, region := range regions {
		files[region] = &file{files: w.files(region), app: j.App, name: name}
	}
	where, err := segment.Parse([]byte(job.ParamsOf[Params](j).Where))
	var asOf int64
	if err == nil {
		asOf, err = w.source.Each(ctx, app.For(consent.Export), where, func(u query.User) error {
			if files[u.Region] == nil { // the app has got it since
				return fmt.Errorf("a user lives in the region %q, and the app had %v at the start", u.Region, regions)
			}
			return files[u.Region].add(ctx, u)
		})
	}
	for _, region := range regions {
		if err == nil {
			err = files[region].end(ctx)
		}
		lines += files[region].lines
	}
	var refused *fault.Error
	if errors.As(err, &refused) || errors.Is(err, query.ErrOff) {
		err = fmt.Errorf("%w: %w", job.ErrFailed, err)
	}
	if err != nil {
		return job.Progress{}, fmt.Errorf("export the users of a segment: %w", err)
	}
	result, err := json.Marshal(Result{int64(lines), time.UnixMilli(asOf).UTC(), name, regions})
	if err != nil {
		return job.Progress{}, err
	}
	p := job.Progress{Done: true, Counts: job.Count(Counts{Users: int64(lines)}).Minus(shard.Counts),
		Result: string(result)}
	return p, progress(p)
}

// file is a file of a region that is being written.
type file struct {
	files         Files
	app, name     string
	chunk         []byte
	chunks, lines int
}

func (f *file) add(ctx context.Context, u query.User) error {
	line, err := json.Marshal(api.SegmentUser{UserToken: u.Token, Score: u.Score})
	if err != nil {
		return err
	}
	if len(f.chunk)+len(line)+1 > store.MaxExportChunk {
		if err := f.flush(ctx); err != nil {
			return err
		}
	}
	f.chunk = append(append(f.chunk, line...), '\n')
	f.lines++
	return nil
}

func (f *file) flush(ctx context.Context) error {
	if len(f.chunk) == 0 {
		return nil
	}
	if err := f.files.WriteExportChunk(ctx, f.app, f.name, f.chunks, f.chunk); err != nil {
		return err
	}
	f.chunks++
	f.chunk = f.chunk[:0]
	return nil
}

func (f *file) end(ctx context.Context) error {
	if err := f.flush(ctx); err != nil {
		return err
	}
	return f.files.EndExport(ctx, f.app, f.name, f.chunks, f.lines)
}
