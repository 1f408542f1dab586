package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/affinityengine/affinity/shared/local/disk"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// Growth measures a data set on disk at several sizes: the engine's import of the users
// that are new since the last size, the fold of their histories, and then a recompute of
// all profiles. It goes on where an earlier run with the same folder ended.
type Growth struct {
	Dir    string // has a folder for each number of events a user
	Totals []int  // events of all users, ascending
	Recompute
}

// GrowthReport is the outcome. --json prints it as it is.
type GrowthReport struct {
	Machine Machine       `json:"machine"`
	Config  Config        `json:"config"`
	Series  []GrowthState `json:"series"` // by events a user
}

// GrowthState is what was measured with the users of one folder, and how far it is.
type GrowthState struct {
	EventsPerUser int `json:"eventsPerUser"`
	Facets        int `json:"facets"`
	Values        int `json:"values"`
	Selected      int `json:"selected"`

	Users   int          `json:"users"`   // imported
	Version int64        `json:"version"` // of the strategy of the last recompute
	Sizes   []GrowthSize `json:"sizes"`   // the last one may not be Done
}

// GrowthSize is what was measured at one size.
type GrowthSize struct {
	Events int  `json:"events"` // of all users
	Users  int  `json:"users"`
	Done   bool `json:"done"`
	// Breaks is how often a run ended before the size was done and after its first record.
	// What it had not recorded was done again.
	Breaks int `json:"breaks,omitempty"`

	Import    Cost `json:"import"` // of the users since the last size
	Fold      Cost `json:"fold"`   // the job after an import, over all users
	Recompute Cost `json:"recompute"`

	DiskBytes int64 `json:"diskBytes"` // of the folder, after the recompute
	// ForgotFiles says that the recompute found nothing of the folder in memory.
	ForgotFiles bool `json:"forgotFiles"`
	// PeakHeapBytes is the client's in the recompute, ServerPeakBytes the most memory that the
	// server's process had in it.
	PeakHeapBytes   uint64 `json:"peakHeapBytes"`
	ServerPeakBytes int64  `json:"serverPeakBytes"`
}

// Cost is what a step took.
type Cost struct {
	Events           int     `json:"events"` // that the step imported, folded or scored
	Seconds          float64 `json:"seconds"`
	ClientCPUSeconds float64 `json:"clientCPUSeconds"`
	ServerCPUSeconds float64 `json:"serverCPUSeconds"`
	Requests         int64   `json:"requests"`
}

func (c *Cost) add(t taken) {
	c.Seconds += t.seconds
	c.ClientCPUSeconds += t.cpu
	c.ServerCPUSeconds += t.server.CPUSeconds
	c.Requests += t.server.Requests
}

const (
	stateFile = "measured.json"
	// growthStep is the number of events between two records of how far an import is.
	growthStep = 500_000
	// bytesAnEvent is a generous bound of what an event takes on disk: its row, its part of a
	// block, and files that are being merged. 25,000,000 events took 323 bytes each at the end.
	bytesAnEvent = 1_500
)

// Check returns a FlagError for a value out of range.
func (o Growth) Check() error {
	for i, total := range o.Totals {
		for _, each := range o.Events {
			if total < each || total/each > maxUsers {
				return flagf("--totals %d: must be 1 to %d users of %d events", total, maxUsers, each)
			}
		}
		if i > 0 && total <= o.Totals[i-1] {
			return flagf("--totals: each size must be larger than the one before")
		}
	}
	if o.InProcess {
		return flagf("--in-process: a folder is served by a process of its own")
	}
	return o.Recompute.Check()
}

// Run measures.
func (o Growth) Run(ctx context.Context, start Starter) (GrowthReport, error) {
	if err := o.Check(); err != nil {
		return GrowthReport{}, err
	}
	report := GrowthReport{Machine: machine(), Config: o.config()}
	for _, each := range o.Events {
		g := &growth{Growth: o, each: each, start: start, dir: filepath.Join(o.Dir, fmt.Sprintf("%d-a-user", each))}
		err := g.load()
		for _, total := range o.Totals {
			if err == nil {
				err = g.measure(ctx, total)
			}
		}
		if err != nil {
			return GrowthReport{}, fmt.Errorf("%d events a user: %w", each, err)
		}
		report.Series = append(report.Series, g.state)
	}
	return report, nil
}

// growth is the measurement of one folder.
type growth struct {
	Growth
	each  int // events a user
	start Starter
	dir   string
	state GrowthState
}

// load reads how far an earlier run came.
func (g *growth) load() error {
	if err := os.MkdirAll(g.dir, 0o700); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	want := GrowthState{EventsPerUser: g.each, Facets: g.Facets, Values: g.Values, Selected: g.Selected}
	text, err := os.ReadFile(filepath.Join(g.dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		g.state = want
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &g.state)
	}
	if err != nil {
		return fmt.Errorf("read what an earlier run measured: %w", err)
	}
	if s := g.state; s.EventsPerUser != g.each || s.Facets != g.Facets || s.Values != g.Values ||
		s.Selected != g.Selected {
		return fmt.Errorf("the users of %s have %d facets of up to %d values, of which %d are scored: name these, or "+
			"another --dir", g.dir, s.Facets, s.Values, s.Selected)
	}
	return nil
}

// save records how far the run is.
func (g *growth) save() error {
	text, err := json.MarshalIndent(g.state, "", "  ")
	if err != nil {
		return err
	}
	file := filepath.Join(g.dir, stateFile)
	if err := os.WriteFile(file+".new", append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("record how far the run is: %w", err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("record how far the run is: %w", err)
	}
	return nil
}

// size returns the record of a size, and whether there was one.
func (g *growth) size(users int) *GrowthSize {
	i := slices.IndexFunc(g.state.Sizes, func(s GrowthSize) bool { return s.Users == users })
	if i < 0 {
		g.state.Sizes = append(g.state.Sizes, GrowthSize{Events: users * g.each, Users: users})
		return &g.state.Sizes[len(g.state.Sizes)-1]
	}
	if s := &g.state.Sizes[i]; !s.Done {
		s.Breaks++
	}
	return &g.state.Sizes[i]
}

// measure measures a size, unless an earlier run has.
func (g *growth) measure(ctx context.Context, total int) error {
	users := total / g.each
	size := g.size(users)
	switch {
	case size.Done:
		return nil
	case g.state.Users > users:
		return fmt.Errorf("%s holds %d users, and %d events are of %d: name another --dir", g.dir, g.state.Users, total,
			users)
	}
	if err := g.checkRoom(users); err != nil {
		return err
	}
	if err := g.fill(ctx, size); err != nil {
		return err
	}
	size.ForgotFiles = forgetFiles(g.dir) == nil
	if err := g.recompute(ctx, size); err != nil {
		return err
	}
	var err error
	if size.DiskBytes, err = folderBytes(g.dir); err != nil {
		return err
	}
	size.Done = true
	return g.save()
}

// checkRoom fails if the disk has no room for what is to be imported.
func (g *growth) checkRoom(users int) error {
	need := uint64(users-g.state.Users) * uint64(g.each) * bytesAnEvent
	free, err := disk.Free(g.dir)
	if err != nil {
		return err
	}
	if free < need {
		return fmt.Errorf("%d more events need about %.0f GB, and %s has %.0f GB free: name a --dir on a larger disk, or "+
			"fewer --totals", (users-g.state.Users)*g.each, float64(need)/1e9, g.dir, float64(free)/1e9)
	}
	return nil
}

func (g *growth) open(ctx context.Context) (*client, error) {
	c, err := openClientOn(ctx, g.start, filepath.Join(g.dir, "data"))
	if err == nil {
		c.version = g.state.Version
	}
	return c, err
}

// fill imports users until there are as many as the size has, and folds them.
func (g *growth) fill(ctx context.Context, size *GrowthSize) (err error) {
	c, err := g.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	d := newDataset(shape{size.Users, g.each, g.Facets, g.Selected, g.Values})
	l := historyLoader{newHistoryReader(c, d, 0)}
	all := func(events []store.LogEvent) []store.LogEvent { return events }
	for step := max(1, growthStep/g.each); g.state.Users < size.Users; {
		g.progress("%d of %d users", g.state.Users, size.Users)
		next := min(g.state.Users+step, size.Users)
		t, err := c.measure(func() error { return l.load(ctx, span{g.state.Users, next}, all) })
		if err != nil {
			return err
		}
		size.Import.add(t)
		size.Import.Events += (next - g.state.Users) * g.each
		g.state.Users = next
		if err := g.save(); err != nil {
			return err
		}
	}
	g.progress("folding %d users", size.Users)
	app := l.app
	app.StrategyVersion, app.ScoringVersion = g.state.Version, g.state.Version
	t, err := c.measure(func() error {
		l.engine.RenewDictionary(ctx, app, nil)
		return eachShard(ctx, d.users, (d.users+workers()-1)/workers(), func() func(context.Context, span) error {
			return func(ctx context.Context, sp span) error {
				_, err := l.engine.Recompute(ctx, app, store.Range{From: d.user(sp.from), To: d.user(sp.to)},
					profile.RecomputeOptions{OnlyStale: true, Fold: true}, func(profile.Progress) error { return nil })
				return err
			}
		})
	})
	if err != nil {
		return fmt.Errorf("fold: %w", err)
	}
	size.Fold.add(t)
	size.Fold.Events = size.Import.Events
	return g.save()
}

// recompute computes all profiles after a change of the strategy, and checks them.
func (g *growth) recompute(ctx context.Context, size *GrowthSize) (err error) {
	c, err := g.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	d := newDataset(shape{size.Users, g.each, g.Facets, g.Selected, g.Values})
	g.progress("recomputing %d users", size.Users)
	r, t := newHistoryReader(c, d, 0), newTarget(c, true)
	g.state.Version = t.version
	taken, err := c.measure(func() error { return r.recompute(ctx, t) })
	if err != nil {
		return fmt.Errorf("recompute: %w", err)
	}
	size.Recompute = Cost{Events: size.Events}
	size.Recompute.add(taken)
	size.PeakHeapBytes, size.ServerPeakBytes = taken.peakHeap, taken.server.PeakBytes
	g.progress("checking %d profiles", size.Users)
	j, err := newJudge(ctx, d)
	if err != nil {
		return err
	}
	return errors.Join(j.total(t), j.stored(ctx, c, d))
}

// folderBytes is the size of all files of a folder.
func folderBytes(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
