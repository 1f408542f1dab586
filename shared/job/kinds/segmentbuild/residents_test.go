package segmentbuild_test

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentbuild"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/store"
)

// residents is a harness of an app that lives in eu, and whose users live in eu or us. They begin in eu.
type residents struct {
	*harness
	tables map[string]*bigtable.Client
}

var regions = []string{"eu", "us"}

func newResidents(h jobtest.T, tb testing.TB) *residents {
	r := &residents{tables: map[string]*bigtable.Client{}}
	r.harness = newHarness(h, func(dial ...grpc.DialOption) (*store.Store, *bigtable.Client) {
		stores := map[string]*store.Store{}
		for _, region := range regions {
			stores[region], r.tables[region] = storetest.NewWithClient(tb, dial...)
		}
		both, err := store.Regional("eu", "eu", stores, func(string) (store.Place, error) {
			return store.Place{Read: "eu", Write: []string{"eu"}, Users: regions}, nil
		})
		must.Succeed(tb, err)
		return both, nil
	}, small)
	_, err := r.Config.UpdateMove(h.Context(), app, func(a *config.App) error { a.Region = "eu"; return nil })
	must.Succeed(tb, err)
	return r
}

// newSpread makes residents of whom some have a region of their own.
func newSpread(h jobtest.T, tb testing.TB, users, spread int) *residents {
	r := newResidents(h, tb)
	r.reside(config.ResidencyPrepare)
	r.reside(config.ResidencyOn)
	if users > 0 {
		r.fill(users)
	}
	for i := 0; i < spread; i += 2 {
		must.Succeed(r.T, r.moves(r.T.Context(), token(i), "us"))
	}
	r.cleanAll(spread)
	return r
}

func (r *residents) reside(mode config.ResidencyMode) {
	r.T.Helper()
	_, err := r.Config.SetResidency(r.T.Context(), app, config.Residency{Mode: mode, Regions: regions}, 0)
	must.Succeed(r.T, err)
}

// moves moves a user.
func (r *residents) moves(ctx context.Context, user, region string) error {
	return profile.ResidentsOf(r.engine).Move(ctx, r.app(), user, region, r.Now.AddDate(1, 0, 0))
}

func (r *residents) cleanAll(users int) {
	r.T.Helper()
	for i := range users {
		r.clean(r.T.Context(), token(i))
	}
}

// clean removes what a region holds of a user who lives elsewhere, once no process takes them to be there.
func (r *residents) clean(ctx context.Context, user string) {
	r.T.Helper()
	r.Now = r.Now.Add(2 * config.TTL)
	for _, region := range regions {
		for range 4 {
			if done, err := profile.ResidentsOf(r.engine).Clean(ctx, r.app(), user, region, 0); done || err != nil {
				break // the process has died, and cleans another time
			}
		}
	}
}

// wantApart checks that no row of a region names a user who lives elsewhere.
func (r *residents) wantApart(users int) {
	r.T.Helper()
	for _, region := range regions {
		r.wantNamed(region, r.named(region), users)
	}
}

// wantNamed checks that a region names nobody of some users who lives elsewhere.
func (r *residents) wantNamed(region string, names map[string]bool, users int) {
	r.T.Helper()
	for i := range users {
		lives, err := profile.ResidentsOf(r.engine).Region(r.T.Context(), r.app(), token(i))
		must.Succeed(r.T, err)
		if lives != region && names[token(i)] {
			r.T.Errorf("%s names %s, who lives in %s", region, token(i), lives)
		}
	}
}

// packed returns the tokens in the parts of a region that count.
func (r *residents) packed(region string) map[string]bool {
	r.T.Helper()
	names, named := map[string]bool{}, ""
	for _, p := range r.manifestIn(region).Parts {
		named += app + ",p," + p.ID.String() + ","
	}
	err := r.tables[region].Open(store.TableSegments).ReadRows(r.T.Context(), bigtable.InfiniteRange(""), func(row bigtable.Row) bool {
		if part, _, tokens := strings.Cut(row.Key(), "t,"); tokens && strings.Contains(named, part) {
			for _, cells := range row {
				for _, cell := range cells {
					tokens, err := segment.ParseTokens(cell.Value)
					must.Succeed(r.T, err)
					for i := range tokens.Len() {
						if token, kept := tokens.At(i); kept {
							names[token] = true
						}
					}
				}
			}
		}
		return true
	})
	must.Succeed(r.T, err)
	return names
}

// named returns the users of the harness whom keys or values in a region name.
func (r *residents) named(region string) map[string]bool {
	r.T.Helper()
	names := r.packed(region)
	find := func(text string) {
		for at := 0; at+4 <= len(text); at++ {
			if digits := text[at+1 : at+4]; text[at] == 'u' && strings.Trim(digits, "0123456789") == "" {
				user := text[at : at+4]
				if at+4 < len(text) && text[at+4] == '+' {
					user += "+"
				}
				names[user] = true
			}
		}
	}
	for _, table := range []string{store.TableUsers, store.TableEvents, store.TableHistories, store.TableSegments,
		store.TableChanges, store.TableUsage, store.TableRefused, store.TableRecent, store.TableCalls, store.TableJobs} {
		err := r.tables[region].Open(table).ReadRows(r.T.Context(), bigtable.InfiniteRange(""), func(row bigtable.Row) bool {
			find(row.Key())
			for _, cells := range row {
				for _, cell := range cells {
					find(cell.Column)
					find(string(cell.Value))
				}
			}
			return true
		})
		must.Succeed(r.T, err)
	}
	return names
}

// Segments of users who live in two regions answer as those of one, after builds, changes, moves and deltas, and each
// region names its own users.
func TestResidents(t *testing.T) {
	r := newSpread(t, t, 40, 20)
	j := r.build()
	r.WantState(j.ID, job.Done, "")
	r.wantExact("built")
	r.run()
	for _, region := range regions {
		if m := r.manifestIn(region); m.Version == 0 || m.Job != j.ID || len(m.Parts) < 10/8 {
			t.Errorf("manifest of %s: %+v", region, m)
		}
	}
	for step := range 4 {
		for i := range 4 {
			r.apply(r.seen(token(7*i+step), "c1", time.Hour), r.seen(token(40+4*step+i), "c2", time.Hour))
		}
		r.wantExact("changed")
		for i := range 4 {
			must.Succeed(t, r.moves(t.Context(), token(5*i+step), regions[step%2]))
			r.wantExact("moved")
		}
		_, err := r.engine.Delete(t.Context(), app, token(3*step))
		must.Succeed(t, err)
		r.wantExact("deleted")
		for turn := range 2 {
			if turn == step%2 {
				r.order()
				r.wantExact("delta")
				continue
			}
			r.cleanAll(60)
			r.wantExact("cleaned")
			for _, region := range regions {
				r.wantNamed(region, r.packed(region), 60)
			}
		}
	}
	r.build()
	r.wantExact("built again")
	r.run()
	r.Now = r.Now.Add(time.Hour)
	must.Succeed(t, r.runner.Clean(t.Context(), segmentbuild.Request{App: app}))
	r.wantExact("cleaned")
	r.wantApart(60)
	if eu, us := len(r.named("eu")), len(r.named("us")); eu < 10 || us < 10 {
		t.Errorf("eu names %d users, us %d", eu, us)
	}
}

// Users from before residency live in the region of the app, and have no owner before a build. Queries need no lists of
// other regions before anybody lives there.
func TestResidencyBegins(t *testing.T) {
	r := newResidents(t, t)
	r.fill(20)
	r.build()
	r.reside(config.ResidencyPrepare)
	r.wantExact("prepared")
	r.build()
	r.wantExact("prepared and built")
	r.reside(config.ResidencyOn)
	r.wantExact("on")
	must.Succeed(t, r.moves(t.Context(), token(3), "us"))
	must.Succeed(t, r.moves(t.Context(), "u099", "us"))
	r.apply(r.seen("u099", "c0", time.Hour))
	r.wantExact("moved")
	r.order()
	r.wantExact("delta")
	r.build()
	r.wantExact("built")
}

// Queries need no lists of a region in which nobody has lived before. An update starts the build that makes them.
func TestListsOfANewRegion(t *testing.T) {
	r := newResidents(t, t)
	r.fill(20)
	r.build()
	r.reside(config.ResidencyPrepare)
	r.Now = r.Now.Add(time.Hour)
	r.reside(config.ResidencyOn)
	r.wantExact("on")
	for i := range 6 {
		must.Succeed(t, r.moves(t.Context(), token(3*i), "us"))
	}
	must.Succeed(t, r.moves(t.Context(), "u099", "us"))
	r.apply(r.seen("u099", "c0", time.Hour), r.seen(token(3), "c1", time.Hour), r.seen(token(4), "c1", time.Hour))
	r.wantExact("moved")
	must.Succeed(t, r.moves(t.Context(), token(1), "us"))
	_, err := r.engine.Delete(t.Context(), app, token(6))
	must.Succeed(t, err)
	r.wantExact("moved more")
	if m := r.manifestIn("us"); m.Version != 0 {
		t.Fatalf("us has the manifest %+v", m)
	}
	r.order()
	r.wantExact("updated")
	if m := r.manifestIn("us"); m.Version == 0 {
		t.Error("no build has made the manifest of us")
	}
}

// A process that takes a user to live where they have lived long ago may draw a ticket there. Nobody counts the row.
func TestRowOfNobodyIsNotPacked(t *testing.T) {
	r := newSpread(t, t, 12, 6)
	eu := r.store.In("eu")
	must.Succeed(t, eu.Events.Log(app, r.app().Log).Append(t.Context(), []store.LogEvent{r.seen(token(2), "c0", time.Hour)}))
	_, err := eu.Users.TakeTicket(t.Context(), app, token(2))
	must.Succeed(t, err)
	r.build()
	r.wantExact("built")
	r.wantNamed("eu", r.packed("eu"), 12)
}

// Whatever request a mover dies at, each user is in one answer, before and after builds and deltas.
func TestMoveOfAResidentDies(t *testing.T) {
	for _, f := range []jobtest.Fault{jobtest.FailBefore, jobtest.FailAfter} {
		for at := 0; ; at += race.Or(4, 17) {
			r := newSpread(t, t, 12, 6)
			r.build()
			calls := r.DieAt(at, f)
			err := r.moves(jobtest.Process(t.Context()), token(5), "us")
			r.Gate = nil
			what := fmt.Sprintf("died at request %d", at)
			r.wantExact(what)
			switch at % 3 {
			case 0:
				r.build()
			case 1:
				r.apply(r.seen(token(0), "c1", time.Hour), r.seen(token(1), "c1", time.Hour))
				r.order()
			}
			r.wantExact(what + ", lists updated")
			must.Succeed(t, r.moves(t.Context(), token(5), "us"))
			r.wantExact(what + ", moved again")
			r.build()
			r.wantExact(what + ", built again")
			if err == nil && at >= calls() {
				break
			}
		}
	}
}

// A user moves between any two requests of a build, or of a delta.
func TestListsMeetAMove(t *testing.T) {
	for _, kind := range []string{"build", "delta"} {
		for at := 0; ; at += race.Or(13, 37) {
			r := newSpread(t, t, 12, 6)
			r.build()
			r.run()
			r.apply(r.seen(token(3), "c1", time.Hour), r.seen(token(4), "c1", time.Hour))
			r.Now = r.Now.Add(time.Minute)
			calls := 0
			r.Gate = func(context.Context, string) jobtest.Fault {
				if calls++; calls-1 == at {
					gate := r.Gate
					r.Gate = nil
					for i, to := range map[int]string{0: "eu", 3: "us", 4: "eu", 5: "us"} {
						must.Succeed(t, r.moves(t.Context(), token(i), to))
					}
					r.Gate = gate
				}
				return jobtest.None
			}
			if kind == "build" {
				r.build()
			} else {
				r.order()
			}
			r.Gate = nil
			what := fmt.Sprintf("moves at request %d of a %s", at, kind)
			r.wantExact(what)
			r.Now = r.Now.Add(time.Minute)
			r.apply(r.seen(token(1), "c1", time.Hour), r.seen(token(2), "c1", time.Hour))
			r.order()
			r.wantExact(what + ", another delta")
			if at >= calls {
				break
			}
		}
	}
}

// TestModelOfResidents is TestModel with users who live in two regions, and move at any time. A mover may die, and who
// cleans behind it, too.
func TestModelOfResidents(t *testing.T) {
	must.Succeed(t, flag.Set("rapid.checks", fmt.Sprint((*campaign+2)/3)))
	rapid.Check(t, func(of *rapid.T) {
		r := newSpread(of, t, 0, 0)
		r.history(of, map[string]func(*rapid.T){
			"move": func(of *rapid.T) {
				for range rapid.IntRange(1, 4).Draw(of, "users") {
					r.dies(of)
					_ = r.moves(jobtest.Process(of.Context()), user.Draw(of, "user"), rapid.SampledFrom(regions).Draw(of, "region"))
					r.Gate = nil
				}
			},
			"clean": func(of *rapid.T) {
				for range rapid.IntRange(1, 8).Draw(of, "users") {
					r.dies(of)
					r.clean(jobtest.Process(of.Context()), user.Draw(of, "user"))
					r.Gate = nil
				}
			},
		})
		for range 2 { // the first may complete a move whose mover died
			r.cleanAll(60)
		}
		r.build()
		r.run()
		r.Now = r.Now.Add(time.Hour)
		must.Succeed(of, r.runner.Clean(of.Context(), segmentbuild.Request{App: app}))
		r.wantExact("at the end")
		r.wantApart(60)
	})
}

// dies lets the next process die at some request.
func (r *residents) dies(of *rapid.T) {
	r.DieAt(rapid.IntRange(0, 40).Draw(of, "dies at request"), rapid.SampledFrom([]jobtest.Fault{jobtest.FailBefore, jobtest.FailAfter}).Draw(of, "fault"))
}
