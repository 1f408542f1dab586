package ranker

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// input is what a ranking needs besides the request and the candidates.
type input struct {
	user       profile.Result // with the strategy that ranks
	statistics indexStatistics
	counts     []float64 // of the candidates
	neighbours []ranking.Neighbours
	seen       map[string]bool // objects that the user's events name
	unread     error           // why user is one without events
}

// read reads the input of a ranking, and fills in the candidates. app has the
// strategy that the request asks for.
func (o *Orderer) read(ctx context.Context, app config.App, r asked) (input, error) {
	var in input
	date := dateOf(app.Strategy)
	g, group := errgroup.WithContext(ctx)
	if !r.Prepared {
		g.Go(func() error { return o.objects.fill(group, app.ID, r.Index, date, r.Candidates) })
	}
	g.Go(func() (err error) {
		in.statistics, err = o.statistics.get(group, app.ID, r.Index)
		in.counts = in.statistics.of(r.Candidates)
		return err
	})
	// The longest read runs on the caller's goroutine, whose stack has grown with
	// earlier requests: the client of the database calls deep.
	err := o.readUser(group, app, r, &in)
	g.Go(func() error { return err }) // ends the other reads, unless one of them failed first
	if err := g.Wait(); err != nil {
		return input{}, err
	}
	// The strategy may have changed since app was cached.
	if current := dateOf(in.user.App.Strategy); current != date && !r.Prepared {
		if err := o.objects.fill(ctx, app.ID, r.Index, current, r.Candidates); err != nil {
			return input{}, err
		}
	}
	in.neighbours, err = o.neighbours(ctx, app, r, &in)
	return in, err
}

// readUser reads what the request needs of the user: the profile, the session and
// the objects seen, with the strategy that ranks and the request's placement. A
// request that has a UserWait gets a user without events if that takes longer or
// fails. Who gets an order of an arm is noted: that of the active strategy, which nobody explains.
func (o *Orderer) readUser(ctx context.Context, app config.App, r asked, in *input) error {
	in.user = profile.Result{App: app}
	if r.User == "" {
		return nil
	}
	if r.UserWait == 0 {
		err := o.readKnown(ctx, app, r, in)
		o.met(r, in.user, err)
		in.user.App = r.placed(in.user.App)
		return err
	}
	short, cancel := context.WithTimeout(ctx, r.UserWait)
	defer cancel()
	var read input
	if err := o.readKnown(short, app, r, &read); err != nil {
		in.unread = err
		return ctx.Err()
	}
	in.user, in.seen = read.user, read.seen
	o.met(r, in.user, nil)
	in.user.App = r.placed(in.user.App)
	return nil
}

// met notes which arm the user of a request gets.
func (o *Orderer) met(r asked, user profile.Result, err error) {
	if err == nil && r.active() && !r.Explain {
		profile.ExposuresOf(o.profiles).Note(r.User, user)
	}
}

func (o *Orderer) readKnown(ctx context.Context, app config.App, r asked, in *input) error {
	asks := r.Seen == ranking.Demote || r.Seen == ranking.Exclude
	if !asks || app.Identity.Serves() {
		var err error
		if in.user, err = o.user(ctx, app, r); err == nil && asks {
			in.seen, err = o.seen(ctx, app, r, cmp.Or(in.user.Of, r.User))
		}
		return err
	}
	g, group := errgroup.WithContext(ctx)
	g.Go(func() (err error) { in.seen, err = o.seen(group, app, r, r.User); return err })
	var err error
	in.user, err = o.user(group, app, r)
	g.Go(func() error { return err })
	return g.Wait()
}

// neighbours reads the links of the objects of the user's session: of all if neighbours
// have a weight, else of those of the last instant if another kind of links has one.
func (o *Orderer) neighbours(ctx context.Context, app config.App, r asked, in *input) ([]ranking.Neighbours, error) {
	weights := in.user.App.Strategy.RankingOrDefault().Links()
	if weights == [crowd.Ranked]int{} {
		return nil, nil
	}
	return o.sessionLinks(ctx, app, r.Request, in, weights[crowd.Together] == 0)
}

// sessionLinks reads the links of the objects of the user's session, or of those of the last
// instant alone. A request that has a UserWait goes without them if they cannot be read in time.
func (o *Orderer) sessionLinks(ctx context.Context, app config.App, r Request, in *input,
	last bool) ([]ranking.Neighbours, error) {
	short := ctx
	if r.UserWait > 0 {
		var cancel context.CancelFunc
		short, cancel = context.WithTimeout(ctx, r.UserWait)
		defer cancel()
	}
	held, err := o.objects.held(short, app.ID, r.Index, in.statistics.undecided(in.user.Session))
	if err == nil {
		past := in.statistics.history(in.user.Session, held)
		if last {
			past = slices.DeleteFunc(past, func(p ranking.Past) bool { return !p.Last })
		}
		return o.statistics.neighbours(ctx, in.statistics, past)
	}
	if r.UserWait > 0 && ctx.Err() == nil {
		return nil, nil
	}
	return nil, err
}

// dateOf returns the attribute by which freshness goes, or "" if it has no
// weight.
func dateOf(s strategy.Strategy) string {
	if f := s.RankingOrDefault().Freshness; f.Weight > 0 {
		return f.Attribute
	}
	return ""
}

// user reads the user's profile and session. Under another strategy, which scores in
// another way than the active one, it computes them.
// The App of the result has the strategy that ranks.
func (o *Orderer) user(ctx context.Context, app config.App, r asked) (profile.Result, error) {
	identities := profile.IdentitiesOf(o.profiles)
	active, err := o.config.App(ctx, app.ID)
	if err != nil {
		return profile.Result{}, fmt.Errorf("read configuration of %s: %w", app.ID, err)
	}
	app, active = app.For(r.surface()), active.For(r.surface())
	if r.active() || app.Strategy.SameScoring(active.Strategy) {
		user, err := identities.ReadRanking(ctx, active, r.User)
		switch {
		case err != nil:
			return profile.Result{}, fmt.Errorf("read profile: %w", err)
		case r.active():
			return user, nil
		case app.Strategy.SameScoring(user.App.Strategy):
			user.App, user.Assigned = app, experiment.Assignment{}
			return user, nil
		} // else the strategy has just changed
	}
	user, err := identities.ComputeRanking(ctx, app, r.User, o.prepare(app, r).scoring)
	if err != nil {
		return profile.Result{}, fmt.Errorf("compute profile under another strategy: %w", err)
	}
	return user, nil
}

// surface returns where the order is used.
func (r *asked) surface() consent.Surface { return cmp.Or(r.Surface, consent.Rank) }

// seen returns the objects of the index that a user's events name: events that
// the strategy scores.
func (o *Orderer) seen(ctx context.Context, app config.App, r asked, user string) (map[string]bool, error) {
	named := map[string]bool{}
	err := o.profiles.ObjectsOf(ctx, app.For(r.surface()), user, o.prepare(app, r).scoring, func(e affinity.Event) error {
		if e.Index == r.Index {
			for _, id := range e.ObjectIDs {
				named[id] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read what the user has seen: %w", err)
	}
	return named, nil
}
