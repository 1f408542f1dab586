package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"
	"time"

	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/serve/ranker"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// Rank measures POST /1/rank with the function's handler in this process, from the
// body of a request to that of its answer.
type Rank struct {
	Candidates, Affinities int
	Requests, Cold         int // measured, of each kind
	CPUProfile             string
	Common
}

// RankReport is the outcome. --json prints it as it is.
type RankReport struct {
	Machine    Machine `json:"machine"`
	InProcess  bool    `json:"inProcess"`
	Candidates int     `json:"candidates"` // of a request
	Affinities int     `json:"affinities"` // of the user
	Objects    int     `json:"objects"`    // of the index, all with statistics
	Requests   int     `json:"requests"`

	// Warm requests find their candidates and the statistics in memory, and read the
	// user's row from Bigtable. Their candidates are given as IDs; Items gives a
	// relevancy of each; Explained asks for the features of the first twenty; Fresh
	// ranks by a date of each candidate too.
	Warm      Percentiles `json:"warm"`
	Items     Percentiles `json:"items"`
	Explained Percentiles `json:"explained"`
	Fresh     Percentiles `json:"fresh"`
	// HTTP is Warm as a client sees it: HTTP on a connection of loopback that stays
	// open, up to the last byte of the answer.
	HTTP Percentiles `json:"http"`
	// Row only reads the same user row.
	Row Percentiles `json:"row"`
	// Cold requests find nothing in memory. Candidates and statistics come from
	// Bigtable.
	Cold Percentiles `json:"cold"`
}

const (
	rankedUser = "user-0000001"
	rankKey    = "bench-key"
	rankIndex  = "products"
	// catalogFactor is the size of the index in candidates of a request.
	catalogFactor = 5
)

// Check returns a FlagError for a value out of range.
func (o Rank) Check() error {
	switch {
	case o.Candidates < 1 || o.Candidates > api.MaxCandidates:
		return flagf("--candidates %d: must be from 1 to %d", o.Candidates, api.MaxCandidates)
	case o.Affinities < shopFacets:
		return flagf("--affinities %d: must be %d or more", o.Affinities, shopFacets)
	case o.Requests < 1:
		return flagf("--requests %d: must be 1 or more", o.Requests)
	case o.Cold < 1:
		return flagf("--cold %d: must be 1 or more", o.Cold)
	}
	return nil
}

// Run measures.
func (o Rank) Run(ctx context.Context, start Starter) (report RankReport, err error) {
	if err := o.Check(); err != nil {
		return RankReport{}, err
	}
	c, err := openClient(ctx, start)
	if err != nil {
		return RankReport{}, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	r := rankRun{Rank: o, c: c, shop: newRankShop(o.Affinities, o.Candidates*catalogFactor)}
	o.progress("loading %d objects and %d affinities", len(r.shop.objects), o.Affinities)
	if err := r.load(ctx); err != nil {
		return RankReport{}, err
	}
	report = RankReport{
		Machine: machine(), InProcess: o.InProcess, Candidates: o.Candidates, Affinities: o.Affinities,
		Objects: len(r.shop.objects), Requests: o.Requests,
	}
	o.progress("%d requests of each kind", o.Requests)
	return report, r.measure(ctx, &report)
}

type rankRun struct {
	Rank
	c      *client
	shop   *rankShop
	config *config.Store
}

func (r *rankRun) load(ctx context.Context) error {
	r.config = config.NewMemory()
	app := config.App{ID: appID, RetentionDays: windowDays}
	err := r.config.CreateApp(ctx, app)
	if err == nil {
		err = r.config.PutKey(ctx, appID, config.Key{Hash: auth.Hash(rankKey), ACL: []string{auth.Recommendation}})
	}
	for _, s := range []strategy.Strategy{r.shop.freshStrategy(), r.shop.strategy()} {
		if err == nil {
			_, _, err = r.config.SetStrategy(ctx, appID, s)
		}
	}
	if err != nil {
		return fmt.Errorf("make the app: %w", err)
	}
	return r.shop.load(ctx, r.c.store, r.backends())
}

// backends returns the backends of a function that has just started.
func (r *rankRun) backends() rank.Backends {
	now := func() time.Time { return instant }
	b := backend.New(slog.New(slog.DiscardHandler), now, r.c.store, r.config, time.Hour)
	profiles := profile.New(b.Store, b.Config, b.CachedConfig, b.Now, b.Log)
	return rank.Backends{Base: b, Auth: auth.New(b.CachedConfig, auth.Environment{}, nil),
		Orderer: ranker.New(b.Store, b.CachedConfig, profiles, b.Now, b.Log)}
}

// measure takes the measurements of warm requests in turn.
func (r *rankRun) measure(ctx context.Context, report *RankReport) error {
	kinds, end, err := r.kinds(rank.New(r.backends()))
	if err != nil {
		return err
	}
	defer end()
	row := newStopwatch()
	stop, err := profileCPU(r.CPUProfile)
	if err != nil {
		return err
	}
	for i := range r.Requests {
		for _, kind := range kinds {
			if err := kind.ask(i); err != nil {
				return errors.Join(err, stop())
			}
		}
		err := row.time(func() error {
			_, err := r.c.store.Users.ReadServing(ctx, appID, rankedUser, store.UserSession)
			return err
		})
		if err != nil {
			return errors.Join(err, stop())
		}
	}
	if err := stop(); err != nil {
		return err
	}
	for n, into := range []*Percentiles{&report.Warm, &report.Items, &report.Explained, &report.Fresh, &report.HTTP} {
		*into = kinds[n].percentiles()
	}
	report.Row = row.percentiles()
	return r.measureCold(report)
}

// measureCold sends each request to a function that has just started.
func (r *rankRun) measureCold(report *RankReport) error {
	r.progress("%d cold requests", r.Cold)
	cold := newStopwatch()
	for i := range r.Cold {
		kind, err := r.kind(direct(rank.New(r.backends())),
			func(int) api.RankRequest { return r.shop.request(i, r.Candidates) }, 1)
		if err != nil {
			return err
		}
		kind.stopwatch = cold
		if err := kind.ask(0); err != nil {
			return err
		}
	}
	report.Cold = cold.percentiles()
	return nil
}

// Print writes the report for people.
func (r RankReport) Print(out io.Writer) error {
	fmt.Fprintf(out, "%d requests of each kind, one after the other: %d candidates of %d objects against %d "+
		"affinities\n", r.Requests, r.Candidates, r.Objects, r.Affinities)
	where := "a process of its own"
	if r.InProcess {
		where = "the same process"
	}
	fmt.Fprintf(out, "the function's handler, from the body of the request to that of the answer; Bigtable in "+
		"%s, read over gRPC\n", where)
	r.Machine.print(out, r.InProcess)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tp50 ms\tp99 ms")
	for _, line := range []struct {
		what string
		Percentiles
	}{
		{"warm, objectIDs", r.Warm},
		{"warm, items with a relevancy", r.Items},
		{"warm, items, the first 20 explained", r.Explained},
		{"warm, objectIDs, with freshness", r.Fresh},
		{"warm, objectIDs, over HTTP on loopback", r.HTTP},
		{"of each: the read of the user's row", r.Row},
		{"cold, nothing in memory", r.Cold},
	} {
		fmt.Fprintf(w, "%s\t%.3f\t%.3f\n", line.what, line.P50, line.P99)
	}
	return w.Flush()
}
