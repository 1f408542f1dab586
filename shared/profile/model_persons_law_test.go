package profile_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// facts are what the tables say of the tokens at an instant.
type facts struct {
	rows    map[string]store.User
	cells   map[string]links.Cell
	receipt map[int]int64 // of the events that are in the log
}

func (p *people) facts() facts { return readFacts(p.t, p.app(), p.home, tokens, p.events) }

func readFacts(t must.Test, app config.App, home func(token string) *store.Store, tokens []string, events []store.LogEvent) facts {
	f := facts{map[string]store.User{}, map[string]links.Cell{}, map[int]int64{}}
	for _, token := range tokens {
		at := home(token)
		row, err := at.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
		must.Succeed(t, err)
		f.rows[token] = row
		f.cells[token], err = links.Parse(row.Links)
		must.Succeed(t, err)
		all := []store.UserRange{{User: token, To: history.End}}
		must.Succeed(t, at.Events.Log(app.ID, app.Log).ReadObjects(ctx, all, func(_ string, r store.LogRow) error {
			f.receipt[slices.IndexFunc(events, func(e store.LogEvent) bool { return e.ID == r.ID })] = r.Receipt()
			return nil
		}))
	}
	return f
}

// counts is the law: whether an event counts for a token.
func (f facts) counts(e store.LogEvent, receipt int64, token string) bool {
	of, row := f.rows[e.User], f.rows[token]
	if receipt == 0 || of.Excludes(e.Type, e.Time, receipt) || row.Excludes(e.Type, e.Time, receipt) {
		return false
	}
	for _, l := range f.cells[e.User].Entries {
		in := l.Since <= e.Time && e.Time < l.To
		switch {
		case l.State == links.Dead && l.Since <= e.Time && e.Time < l.Was && l.Until.Covers(e.Time, receipt):
			return false
		case l.State == links.Live && l.Known == token && in && l.At > of.ReceivedUntil && l.At > row.ReceivedUntil:
			return true
		}
	}
	return e.User == token
}

// due reports whether the next pass of a deletion makes an event dead that counts for its token: a message that was
// slower than the deletion of a known user has linked the token since.
func (f facts) due(e store.LogEvent) bool {
	return slices.ContainsFunc(f.cells[e.User].Entries, func(l links.Entry) bool {
		return l.State == links.Live && l.Since <= e.Time && e.Time < l.To && l.At <= f.rows[l.Known].ReceivedUntil &&
			l.At > f.rows[e.User].ReceivedUntil
	})
}

// settle notes which events count by the law, where no operation may change it any more.
func (p *people) settle() {
	f := p.facts()
	for n, e := range p.events {
		for _, token := range tokens {
			if f.due(e) {
				delete(p.settled, counting{n, token})
			} else if !slices.ContainsFunc(p.ops, func(o *operation) bool { return o.affects(n, token) }) {
				p.settled[counting{n, token}] = f.counts(e, f.receipt[n], token)
			}
		}
	}
}

// check reads each token as a client would, by the stored profile if that is valid and by a
// computation, and compares what counts with what has settled.
func (p *people) check(when string) {
	p.checkCells(when)
	app, unseen := p.known(), context.WithValue(context.Background(), actorKey{}, onlooker{})
	computed, err := p.engine.Compute(unseen, app, tokens, affinity.Compile(app.Strategy))
	must.Succeed(p.t, err)
	for _, token := range tokens {
		got, err := p.engine.Read(unseen, app, token, 0)
		must.Succeed(p.t, err)
		for name, profile := range map[string]affinity.Profile{fmt.Sprintf("read (stored: %v)", got.Stored): got.Profile, "computed": computed[token][0]} {
			for n := range p.events {
				want, settled := p.settled[counting{n, token}]
				if score := scoreOf(profile, fmt.Sprint("e", n)); settled && (score != 0) != want || score != 0 && score != 30 {
					p.t.Fatalf("%s: %s, %s: event %d of %s scores %v, counts: %v, settled: %v", when, token, name, n, p.events[n].User,
						score, want, settled)
				}
			}
		}
	}
}

// checkCells checks what holds of links in every state.
func (p *people) checkCells(when string) {
	f := p.facts()
	for _, token := range tokens {
		entries := f.cells[token].Entries
		for i, e := range entries {
			if e.State == links.Void || e.At <= f.rows[token].ReceivedUntil {
				continue
			}
			if e.State == links.Live && e.At <= p.undone[[2]string{token, e.Known}] {
				p.t.Fatalf("%s: the link of %s to %s was undone and is back", when, token, e.Known)
			}
			if role := f.cells[e.Known].Role; role != links.Known {
				p.t.Fatalf("%s: %s is linked to %s, which is %s", when, token, e.Known, role)
			}
			for _, o := range entries[i+1:] {
				if o.State != links.Void && o.At > f.rows[token].ReceivedUntil && e.Since < o.To && o.Since < e.To {
					p.t.Fatalf("%s: the intervals %+v and %+v of %s overlap", when, e, o, token)
				}
			}
		}
	}
}
