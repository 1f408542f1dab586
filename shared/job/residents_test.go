package job_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

// world is a harness whose users live in two regions, and all that it ever stored in documents.
type world struct {
	*jobtest.Harness
	tables  map[string]*bigtable.Client
	records *kept
}

// kept are all records that were ever saved.
type kept struct {
	mu   sync.Mutex
	text strings.Builder
}

func (k *kept) Load(func(name string, value []byte) error) error { return nil }

func (k *kept) Save(records ...documents.Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range records {
		fmt.Fprintf(&k.text, "%s %s\n", r.Name, r.Value)
	}
	return nil
}

// twoRegions returns the store of an app that lives in eu and whose users live in eu or us, and the tables of each.
func twoRegions(t *testing.T) (*store.Store, map[string]*bigtable.Client) {
	t.Helper()
	stores, tables := map[string]*store.Store{}, map[string]*bigtable.Client{}
	for _, region := range []string{"eu", "us"} {
		stores[region], tables[region] = storetest.NewWithClient(t)
	}
	s, err := store.Regional("eu", "eu", stores, func(string) (store.Place, error) {
		return store.Place{Read: "eu", Write: []string{"eu"}, Users: []string{"eu", "us"}}, nil
	})
	must.Succeed(t, err)
	return s, tables
}

// residents returns a harness whose users have the names of their regions.
func residents(t *testing.T, s *store.Store, tables map[string]*bigtable.Client, users int) *world {
	t.Helper()
	w := &world{jobtest.New(t, jobtest.Collection, 0, tight), tables, &kept{}}
	for i := range users {
		region := []string{"eu", "us"}[i%2]
		w.Users[fmt.Sprintf("%s-user%02d", region, i)] = &jobtest.User{Known: true, Events: int64(i), Region: region}
	}
	_, err := w.Config.UpdateMove(t.Context(), jobtest.App, func(a *config.App) error { a.Region = "eu"; return nil })
	must.Succeed(t, err)
	for _, mode := range []config.ResidencyMode{config.ResidencyPrepare, config.ResidencyOn} {
		_, err := w.Config.SetResidency(t.Context(), jobtest.App, config.Residency{Mode: mode, Regions: []string{"us", "eu"}}, 0)
		must.Succeed(t, err)
	}
	memory, err := documents.NewStored(w.records)
	must.Succeed(t, err)
	w.Jobs = job.In(memory, jobtest.Collection)
	w.Runner.Jobs = job.Detailed(w.Parts(tight).Jobs, gatedDetails{w.Harness, s.Jobs}, jobtest.Collection)
	w.Jobs = job.Detailed(w.Jobs, s.Jobs, jobtest.Collection)
	return w
}

// wantApart checks that no region has a row that names a user of another one, and no document one that names anybody.
// Each task is in the region of the users whom it names.
func (w *world) wantApart(t *testing.T) {
	t.Helper()
	for region, other := range map[string]string{"eu": "us-user", "us": "eu-user"} {
		err := w.tables[region].Open(store.TableJobs).ReadRows(t.Context(), bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
			for _, cells := range r {
				for _, cell := range cells {
					if text := r.Key() + string(cell.Value); strings.Contains(text, other) {
						t.Errorf("%s holds %s", region, text)
					}
				}
			}
			return true
		})
		must.Succeed(t, err)
		for _, k := range w.Tasks {
			if k.Region != region && strings.Contains(string(k.Body), region+"-user") {
				t.Errorf("a task in %q: %s", k.Region, k.Body)
			}
		}
	}
	for _, region := range []string{"eu-user", "us-user"} {
		if strings.Contains(w.records.text.String(), region) {
			t.Errorf("a document names a user: %s", w.records.text.String())
		}
	}
}

// wantRegions checks that the shards cover every token of each region once, one region after the other.
func (w *world) wantRegions(t *testing.T, id string) {
	t.Helper()
	var regions []string
	from := ""
	for n := 0; len(regions) < 2 || from != ""; n++ {
		s, err := w.Jobs.Shard(t.Context(), jobtest.App, id, n)
		if err != nil || s.From != from {
			t.Fatalf("shard %d of %s begins at %q, error %v; want %q", n, id, s.From, err, from)
		}
		if from == "" {
			regions = append(regions, s.Region)
		} else if s.Region != regions[len(regions)-1] {
			t.Errorf("shard %d of %s is of region %q", n, id, s.Region)
		}
		from = s.To
	}
	if !slices.Equal(regions, []string{"eu", "us"}) {
		t.Errorf("the regions are %q", regions)
	}
}

// A process dies at each request of a job over users of two regions. The job is done all the
// same, and no region ever learns of users of the other one.
func TestRegionsAtEveryRequest(t *testing.T) {
	race.Skip(t, "TestFaultAtEveryCall has the same goroutines")
	for name, cause := range map[string]func(context.Context) jobtest.Fault{
		"the process ends":      jobtest.Dies,
		"ends, but it was done": func(ctx context.Context) jobtest.Fault { jobtest.Dies(ctx); return jobtest.FailAfter },
	} {
		for inFlight := range 2 {
			t.Run(fmt.Sprintf("%s, %d in flight", name, inFlight), func(t *testing.T) {
				s, tables := twoRegions(t)
				calls := inFlight + 1
				for at := inFlight; at < calls; at += 2 { // the two together at each
					w := residents(t, s, tables, 7)
					w.Users["us-user01"].Relapses = 1
					w.Users["eu-user02"].Fault, w.Users["us-user03"].Fault, w.Users["us-user05"].Waits = "bent", "broken", true
					w.FaultAt(at, &calls, cause)
					untilStarted(t, w.Harness, inFlight)
					w.Drain()
					w.Gate = nil
					w.WantUsers("strategy-1")
					w.wantRegions(t, "strategy-1")
					w.wantApart(t)
					forget(t, s)
					if t.Failed() {
						t.Fatalf("with request %d", at)
					}
				}
				if calls < 100 {
					t.Errorf("only %d requests were tried", calls)
				}
			})
		}
	}
}

// The same until a job fails with an error that names a user of another region than that of the app.
func TestRegionsUntilJobFails(t *testing.T) {
	s, tables := twoRegions(t)
	calls := 1
	for at := 0; at < calls && !t.Failed(); at += race.Or(3, 7) {
		w := residents(t, s, tables, 8)
		w.Poisoned, w.Poison = "us-user05", errors.New("us-user05 is poisoned")
		w.FaultAt(at, &calls, jobtest.Dies)
		untilStarted(t, w.Harness, 1)
		w.Drain()
		w.Gate = nil
		w.WantState("strategy-1", job.Failed, "us-user05 is poisoned")
		w.wantApart(t)
		forget(t, s)
	}
}

// A job whose planning fails in a region says so there.
func TestRegionCannotBePlanned(t *testing.T) {
	s, tables := twoRegions(t)
	w := residents(t, s, tables, 20)
	users := w.Runner.UsersIn
	w.Runner.UsersIn = func(region string) job.Users {
		if region == "us" {
			return failing{}
		}
		return users(region)
	}
	untilStarted(t, w.Harness, 1)
	w.Drain()
	w.WantState("strategy-1", job.Failed, "us-user01 cannot be read")
	w.wantApart(t)
}

type failing struct{}

func (failing) ScanUserKeys(context.Context, string, string, string, func(string) error) error {
	return errors.New("us-user01 cannot be read")
}

// preparing notes the first users of each region.
type preparing struct {
	job.Work
	starts map[string][]string
}

func (p preparing) Prepare(ctx context.Context, _ job.Job, app config.App, starts func(context.Context) ([]string, error)) error {
	got, err := starts(ctx)
	p.starts[app.Region] = got
	return err
}

// A job is prepared in each region, with users who live there.
func TestRegionsArePrepared(t *testing.T) {
	for users := 0; users < 25; users += 4 {
		s, tables := twoRegions(t)
		w := residents(t, s, tables, users)
		p := preparing{w.Runner.Work, map[string][]string{}}
		w.Runner.Work = p
		untilStarted(t, w.Harness, 0)
		w.Drain()
		w.wantRegions(t, "strategy-1")
		for i, region := range []string{"eu", "us"} {
			want := []string{""}
			for n := i + 6; n < users; n += 6 {
				want = append(want, fmt.Sprintf("%s-user%02d", region, n))
			}
			if got := p.starts[region]; !slices.Equal(got, want) {
				t.Fatalf("of %d users, the first of shards in %s are %q, want %q", users, region, got, want)
			}
		}
	}
}

// A job that was planned in part when all users lived in the region of the app goes on with those of the others.
func TestResidencyBeginsWhilePlanning(t *testing.T) {
	s, tables := twoRegions(t)
	w := residents(t, s, tables, 20)
	old := draft(1)
	old.State = job.Planning
	jobtest.Create(t, w.Jobs, old)
	for _, shard := range []job.Shard{{N: 0, To: "eu-user06"}, {N: 1, From: "eu-user06", To: "eu-user12"}} {
		shard.State, shard.Next, shard.PlannedUsers = job.ShardOpen, shard.From, 3
		must.Succeed(t, w.Jobs.CreateShard(t.Context(), jobtest.App, "strategy-1", shard))
	}
	must.Succeed(t, w.Runner.Resume(t.Context(), jobtest.App))
	w.Drain()
	w.WantUsers("strategy-1")
}
