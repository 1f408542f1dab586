package job

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
)

// NewStored returns stores that keep their jobs in memory and in records. They begin
// with the jobs that the records hold, except those that have expired, which it deletes.
func NewStored(r config.Records) (*Memories, error) {
	m := NewMemories()
	m.records, m.loaded = r, map[string][]config.Record{}
	err := r.Load(func(name string, value []byte) error {
		collection, _, _ := strings.Cut(name, "/")
		m.loaded[collection] = append(m.loaded[collection], config.Record{Name: name, Value: slices.Clone(value)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the jobs: %w", err)
	}
	return m, nil
}

// open makes the store of a collection. The name of a job's record is COLLECTION/APP/ID,
// and that of a shard has /N behind it. Err returns what is wrong with records.
func (m *Memories) open(c Collection) *memory {
	s := &memory{jobs: map[jobKey]*memoryJob{}}
	if m.records == nil {
		return s
	}
	s.records = &collectionRecords{m.records, c}
	records := m.loaded[c.Name]
	delete(m.loaded, c.Name)
	// A job before its shards.
	slices.SortFunc(records, func(a, b config.Record) int {
		return cmp.Or(strings.Count(a.Name, "/")-strings.Count(b.Name, "/"), strings.Compare(a.Name, b.Name))
	})
	for _, r := range records {
		if err := s.add(r); err != nil {
			m.faults = append(m.faults, fmt.Errorf("read record %s: %w", r.Name, err))
		}
	}
	now := time.Now()
	for key, j := range s.jobs {
		if !j.ExpiresAt.IsZero() && j.ExpiresAt.Before(now) && s.records.forget(j) == nil {
			delete(s.jobs, key)
		}
	}
	return s
}

// Err returns what was wrong with the records of the stores that are open, or nil.
func (m *Memories) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return errors.Join(m.faults...)
}

// add adds the job or the shard of a record.
func (m *memory) add(r config.Record) error {
	parts := strings.Split(r.Name, "/")
	if len(parts) < 3 {
		return errors.New("a name has three or four parts")
	}
	key := jobKey{parts[1], parts[2]}
	if len(parts) == 3 {
		j, err := m.records.decodeJob(r.Value)
		m.jobs[key] = &memoryJob{j, map[int]Shard{}}
		return err
	}
	var shard Shard
	if err := json.Unmarshal(r.Value, &shard); err != nil {
		return err
	}
	if m.jobs[key] == nil {
		return errors.New("its job is missing")
	}
	m.jobs[key].shards[shard.N] = shard
	return nil
}

// collectionRecords are the records of one collection. nil keeps nothing.
type collectionRecords struct {
	config.Records
	collection Collection
}

// storedJob is a job with its parameters apart: their type depends on the collection.
type storedJob struct {
	Job    Job
	Params json.RawMessage
}

func (r *collectionRecords) name(app, id string) string {
	return r.collection.Name + "/" + app + "/" + id
}

func (r *collectionRecords) shardName(app, id string, n int) string {
	return r.name(app, id) + "/" + strconv.Itoa(n)
}

func (r *collectionRecords) decodeJob(value []byte) (Job, error) {
	var s storedJob
	if err := json.Unmarshal(value, &s); err != nil {
		return Job{}, err
	}
	var err error
	s.Job.Params, err = r.collection.Decode(func(v any) error { return json.Unmarshal(s.Params, v) })
	return s.Job, err
}

// saveJob saves a job and returns it as a later process would read it.
func (r *collectionRecords) saveJob(j Job) (Job, error) {
	if r == nil {
		return j, nil
	}
	params, err := json.Marshal(j.Params)
	if err != nil {
		return j, fmt.Errorf("encode the parameters of job %s: %w", j.ID, err)
	}
	name := r.name(j.App, j.ID)
	j.Params = nil
	value, err := json.Marshal(storedJob{j, params})
	if err != nil {
		return j, fmt.Errorf("encode job %s: %w", j.ID, err)
	}
	if j, err = r.decodeJob(value); err != nil {
		return j, fmt.Errorf("read back %s: %w", name, err)
	}
	return j, r.Save(config.Record{Name: name, Value: value})
}

// saveShard saves a shard and returns it as a later process would read it.
func (r *collectionRecords) saveShard(app, id string, s Shard) (Shard, error) {
	if r == nil {
		return s, nil
	}
	value, err := json.Marshal(s)
	if err != nil {
		return s, fmt.Errorf("encode shard %d of job %s: %w", s.N, id, err)
	}
	var read Shard
	if err := json.Unmarshal(value, &read); err != nil {
		return s, fmt.Errorf("read back shard %d of job %s: %w", s.N, id, err)
	}
	return read, r.Save(config.Record{Name: r.shardName(app, id, s.N), Value: value})
}

// forget deletes the records of a job and its shards.
func (r *collectionRecords) forget(j *memoryJob) error {
	if r == nil {
		return nil
	}
	records := []config.Record{{Name: r.name(j.App, j.ID)}}
	for n := range j.shards {
		records = append(records, config.Record{Name: r.shardName(j.App, j.ID, n)})
	}
	return r.Save(records...)
}
