package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
)

// memory keeps the jobs of one process.
type memory struct {
	records *collectionRecords // nil: nothing outlives the process
	mu      sync.Mutex
	jobs    map[jobKey]*memoryJob
}

type jobKey struct{ app, id string }

type memoryJob struct {
	Job
	shards map[int]Shard
}

var _ Jobs = (*memory)(nil)

// NewMemory returns a store in memory, for the local stack and tests. Its jobs
// end with the process.
func NewMemory() Jobs { return &memory{jobs: map[jobKey]*memoryJob{}} }

// Memories are memory stores, one for each collection. They are safe for concurrent
// use.
type Memories struct {
	records config.Records // nil: nothing outlives the process
	mu      sync.Mutex
	stores  map[string]*memory
	apart   map[string]bool            // collections of deletions
	loaded  map[string][]config.Record // by collection, until it is opened
	faults  []error
}

// NewMemories returns stores without jobs.
func NewMemories() *Memories {
	return &Memories{stores: map[string]*memory{}, apart: map[string]bool{}}
}

// Open returns the store of a collection, the same one at every call.
func (m *Memories) Open(c Collection) Jobs {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stores[c.Name] == nil {
		m.stores[c.Name], m.apart[c.Name] = m.open(c), c.BelowDeletion
	}
	return m.stores[c.Name]
}

// Forget deletes an app's jobs of all collections but those of its deletion.
func (m *Memories) Forget(ctx context.Context, app string) error {
	var faults []error
	for _, s := range m.ofApps() {
		faults = append(faults, s.Forget(ctx, app))
	}
	return errors.Join(faults...)
}

// Holding names an app's jobs in the collections that Forget clears, at most limit.
func (m *Memories) Holding(ctx context.Context, app string, limit int) ([]string, error) {
	var names []string
	for _, s := range m.ofApps() {
		jobs, err := s.List(ctx, app, limit)
		if err != nil {
			return nil, err
		}
		for _, j := range jobs {
			names = append(names, "job "+j.ID)
		}
	}
	return names[:min(limit, len(names))], nil
}

func (m *Memories) ofApps() []*memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*memory
	for name, s := range m.stores {
		if !m.apart[name] {
			all = append(all, s)
		}
	}
	return all
}

// with calls f with a job, under the lock.
func (m *memory) with(ctx context.Context, app, id string, f func(*memoryJob) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	job, ok := m.jobs[jobKey{app, id}]
	if !ok {
		return fmt.Errorf("job %q of app %q: %w", id, app, ErrNotFound)
	}
	return f(job)
}

func (m *memory) Create(ctx context.Context, job Job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	job, err := job.Prepared()
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := jobKey{job.App, job.ID}
	if m.jobs[key] != nil {
		return fmt.Errorf("job %s of app %q: %w", job.ID, job.App, ErrExists)
	}
	if job, err = m.records.saveJob(job); err == nil {
		m.jobs[key] = &memoryJob{job, map[int]Shard{}}
	}
	return err
}

func (m *memory) Job(ctx context.Context, app, id string) (Job, error) {
	var job Job
	err := m.with(ctx, app, id, func(j *memoryJob) error {
		job = j.Job
		return nil
	})
	return job, err
}

func (m *memory) List(ctx context.Context, app string, limit int) ([]Job, error) {
	jobs, err := m.all(ctx, app, func(Job) bool { return true })
	return jobs[:min(limit, len(jobs))], err
}

func (m *memory) Unfinished(ctx context.Context, app string) ([]Job, error) {
	return m.all(ctx, app, func(j Job) bool { return !j.State.Ended() })
}

func (m *memory) Before(ctx context.Context, queue string, due time.Time) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, job := range m.jobs {
		if job.Queue == queue && !job.State.Ended() && !job.QueuedAt.IsZero() && job.QueuedAt.Before(due) {
			n++
		}
	}
	return n, nil
}

func (m *memory) all(ctx context.Context, app string, include func(Job) bool) ([]Job, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var jobs []Job
	for key, job := range m.jobs {
		if key.app == app && include(job.Job) {
			jobs = append(jobs, job.Job)
		}
	}
	slices.SortFunc(jobs, NewestFirst)
	return jobs, nil
}

func (m *memory) Update(ctx context.Context, app, id string, change func(*Job) error) (Job, error) {
	var job Job
	err := m.with(ctx, app, id, func(j *memoryJob) (err error) {
		if job, err = j.Job.Apply(change); err == nil {
			job, err = m.records.saveJob(job)
		}
		if err == nil {
			j.Job = job
		}
		return err
	})
	return job, err
}

func (m *memory) CreateShard(ctx context.Context, app, id string, shard Shard) error {
	return m.with(ctx, app, id, func(j *memoryJob) error {
		if _, ok := j.shards[shard.N]; ok {
			return fmt.Errorf("shard %d of job %s: %w", shard.N, id, ErrExists)
		}
		shard, err := m.records.saveShard(app, id, shard.Prepared())
		if err == nil {
			j.shards[shard.N] = shard
		}
		return err
	})
}

func (m *memory) Shard(ctx context.Context, app, id string, n int) (Shard, error) {
	var shard Shard
	err := m.with(ctx, app, id, func(j *memoryJob) (err error) {
		shard, err = j.shard(n)
		return err
	})
	return shard, err
}

func (j *memoryJob) shard(n int) (Shard, error) {
	shard, ok := j.shards[n]
	if !ok {
		return Shard{}, fmt.Errorf("shard %d of job %s: %w", n, j.ID, ErrNotFound)
	}
	return shard, nil
}

func (m *memory) LastShard(ctx context.Context, app, id string) (Shard, error) {
	var shard Shard
	err := m.with(ctx, app, id, func(j *memoryJob) (err error) {
		last := -1
		for n := range j.shards {
			last = max(last, n)
		}
		shard, err = j.shard(last)
		return err
	})
	return shard, err
}

func (m *memory) ShardsIn(ctx context.Context, app, id string, state ShardState, limit int) ([]Shard, error) {
	var shards []Shard
	err := m.each(ctx, app, id, func(shard Shard) {
		if shard.State == state {
			shards = append(shards, shard)
		}
	})
	slices.SortFunc(shards, byNumber)
	return shards[:min(limit, len(shards))], err
}

// each calls f with all shards of a job. A job that does not exist has no
// shards.
func (m *memory) each(ctx context.Context, app, id string, f func(Shard)) error {
	err := m.with(ctx, app, id, func(j *memoryJob) error {
		for _, shard := range j.shards {
			f(shard)
		}
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

func (m *memory) UpdateShard(ctx context.Context, app, id string, n int, change func(*Shard) error) (Shard, error) {
	var shard Shard
	err := m.with(ctx, app, id, func(j *memoryJob) error {
		old, err := j.shard(n)
		if err != nil {
			return err
		}
		if shard, err = old.Apply(change); err == nil {
			shard, err = m.records.saveShard(app, id, shard)
		}
		if err == nil {
			j.shards[n] = shard
		}
		return err
	})
	return shard, err
}

func (m *memory) Faults(ctx context.Context, app, id string, limit int) ([]string, error) {
	faulty, err := m.FaultyShards(ctx, app, id, limit)
	return FirstFaults(faulty, limit), err
}

func (m *memory) FaultyShards(ctx context.Context, app, id string, limit int) ([]Shard, error) {
	var faulty []Shard
	err := m.each(ctx, app, id, func(shard Shard) {
		if shard.Counts[CountFaulty] > 0 {
			faulty = append(faulty, shard)
		}
	})
	slices.SortFunc(faulty, byNumber)
	return faulty[:min(limit, len(faulty))], err
}

func (m *memory) Forget(ctx context.Context, app string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	of := func(k jobKey, _ *memoryJob) bool { return k.app == app }
	for key, j := range m.jobs {
		if of(key, j) {
			if err := m.records.forget(j); err != nil {
				return err
			}
		}
	}
	maps.DeleteFunc(m.jobs, of)
	return nil
}

func (m *memory) Totals(ctx context.Context, app, id string) (Totals, error) {
	var totals Totals
	err := m.each(ctx, app, id, totals.add)
	return totals, err
}
