package crowdbuild

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/job"
)

// runHeader describes a complete run of an index. It is written after the parts
// of the run.
type runHeader struct {
	Shard int `json:"shard"`
	// The run covers the users from From up to, but not including, To. An empty
	// end is open.
	From   string `json:"from"`
	To     string `json:"to"`
	Events int64  `json:"events"`
	Users  int64  `json:"users"`
}

func (h runHeader) encode() ([]byte, error) {
	b, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode the header of a run: %w", err)
	}
	return b, nil
}

// catalogHeader stands beside the headers of runs, under the name catalogName.
type catalogHeader struct {
	Objects int `json:"objects"`
}

const catalogName = "catalog"

// runs are the runs of an index that cover each user of a job once.
type runs map[string]runHeader

// runs chooses the runs of an index. A task that a crash has interrupted, or that
// the queue has delivered twice, leaves complete runs that overlap. Any choice
// that covers the users of each shard once is right. objects is the size of the
// catalog, -1 if no shard has counted it yet.
func (t *task) runs(ctx context.Context, index string) (chosen runs, objects int, err error) {
	headers := map[string][]byte{}
	for _, region := range t.app.Everywhere() {
		there, err := t.Store.In(region).Crowd.CrowdRunHeaders(ctx, t.params.ref(t.app.ID, index))
		if err != nil {
			return nil, 0, err
		}
		maps.Copy(headers, there)
	}
	catalog := catalogHeader{Objects: -1}
	byShard := map[int]runs{}
	for name, value := range headers {
		var to any = &catalog
		var h runHeader
		if name != catalogName {
			to = &h
		}
		if err := json.Unmarshal(value, to); err != nil {
			return nil, 0, fmt.Errorf("read the header of run %s of %s: %w", name, index, err)
		}
		if name == catalogName {
			continue
		}
		if byShard[h.Shard] == nil {
			byShard[h.Shard] = runs{}
		}
		byShard[h.Shard][name] = h
	}
	shards, err := t.runner.Jobs.ShardsIn(ctx, t.app.ID, t.job.ID, job.ShardDone, math.MaxInt32)
	if err != nil {
		return nil, 0, fmt.Errorf("list the shards of %s: %w", t.job.ID, err)
	}
	chosen = runs{}
	for _, shard := range shards {
		if shard.Part != "" || shard.PlannedUsers == 0 {
			continue // of a later phase, or done without a task
		}
		covering, ok := byShard[shard.N].cover(shard.From, shard.To)
		if !ok {
			return nil, 0, fmt.Errorf("the runs of shard %d of %s do not cover %q to %q", shard.N, t.job.ID, shard.From,
				shard.To)
		}
		for _, name := range covering {
			chosen[name] = byShard[shard.N][name]
		}
	}
	return chosen, catalog.Objects, nil
}

// cover returns runs that cover a range of users once, in their order.
func (r runs) cover(from, to string) ([]string, bool) {
	names := slices.Sorted(maps.Keys(r))
	dead := map[string]bool{} // places from which no run leads to the end
	var walk func(at string) ([]string, bool)
	walk = func(at string) ([]string, bool) {
		if dead[at] {
			return nil, false
		}
		for _, name := range names {
			switch h := r[name]; {
			case h.From != at:
			case h.To == to:
				return []string{name}, true
			case h.To != "":
				if rest, ok := walk(h.To); ok {
					return append([]string{name}, rest...), true
				}
			}
		}
		dead[at] = true
		return nil, false
	}
	return walk(from)
}

// encodeCatalog encodes the header of a catalog.
func encodeCatalog(objects int) ([]byte, error) {
	b, err := json.Marshal(catalogHeader{objects})
	if err != nil {
		return nil, fmt.Errorf("encode the size of a catalog: %w", err)
	}
	return b, nil
}
