package profile_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// restoredTokens are those of linkedSource.
var restoredTokens = []string{"open", "two", "undone", "dead", "phone", "ended", "k", "k2", "gone", "out"}

// linkedSource has an open, a closed, a void and a dead entry, one that a deletion of the token has ended, a weak one,
// and a token that an opt-out has taken along.
func linkedSource(t testing.TB, open opener) *harness {
	s := newLinked(t, open)
	s.apply(s.of("k", -5, ""), s.of("open", 1, ""), s.of("open", 2, "k"))
	s.apply(s.of("two", 1, "k"), s.of("two", 3, "k2"), s.of("two", 4, ""))
	s.apply(s.of("undone", 1, ""), s.of("undone", 2, "k"))
	s.apply(s.of("dead", 1, ""), s.of("dead", 2, "gone"), s.of("dead", 3, "k2"), s.of("ended", 1, "k"))
	s.apply(s.of("phone", 1, "out"))
	weak, app := s.of("ended", 2, "k"), s.app()
	weak.Strong, app.Identity.TrustPages = false, true
	_, err := s.eng.Apply(ctx, app, []store.LogEvent{weak})
	must.Succeed(t, err)
	s.unlink("undone", "k")
	s.clock++
	_, err = s.eng.Delete(ctx, appID, "gone")
	must.Succeed(t, err)
	_, err = s.eng.Delete(ctx, appID, "ended")
	must.Succeed(t, err)
	_, err = s.eng.OptOut(ctx, appID, "out")
	must.Succeed(t, err)
	s.clock += hour
	return s
}

// dumped returns the links of a token as a dump has them.
func (s *harness) dumped(token string) links.Copy {
	s.t.Helper()
	row, err := s.store.Users.ReadPrimary(ctx, appID, token, store.UserState)
	must.Succeed(s.t, err)
	c := links.Copy{Cell: s.cellOf(token), Deleted: row.Deleted()}
	c.Entries = slices.Clone(c.Entries)
	for i := range c.Entries {
		c.Entries[i].Done = 0
	}
	c.Number = 0
	return c
}

func (s *harness) restoreLinks(ctx context.Context, token string, from links.Copy) error {
	if from.Role == links.None {
		return nil
	}
	left, err := profile.IdentitiesOf(s.eng).Restore(ctx, s.app(), token, from)
	if err == nil && left > 0 {
		s.t.Errorf("%d links of %s are left out", left, token)
	}
	return err
}

// restoreFrom restores what a dump of the source has: the deletions, and in either order the events and the links.
func (s *harness) restoreFrom(source *harness, linksFirst bool) {
	s.t.Helper()
	var all []func()
	for _, token := range restoredTokens {
		row, err := source.store.Users.ReadPrimary(ctx, appID, token, store.UserState)
		must.Succeed(s.t, err)
		if row.DeletedUntil != 0 {
			must.Succeed(s.t, s.eng.RestoreDeletion(ctx, appID, token, row.Deleted(), row.OptedOut))
		}
		events := func() {
			for _, e := range source.logOf(token) {
				logged := bought(token, e.Time)
				logged.Receipt = source.clock - hour - 1
				s.importEvents(logged)
			}
		}
		linked := func() { must.Succeed(s.t, s.restoreLinks(ctx, token, source.dumped(token))) }
		if linksFirst {
			all = append(all, linked, events)
		} else {
			all = append(all, events, linked)
		}
	}
	for _, step := range all {
		step()
	}
}

// A restore gives the tokens the links that they had, whether the events come before or after, and once more it
// changes nothing. What was unlinked stays so, also if the sign-in is delivered again.
func TestRestoredLinks(t *testing.T) {
	for _, linksFirst := range []bool{true, false} {
		onEveryBigtable(t, func(t *testing.T, open opener) {
			source := linkedSource(t, open)
			target := newLinked(t, open)
			target.clock = source.clock
			for range 2 {
				target.restoreFrom(source, linksFirst)
				for _, token := range restoredTokens {
					if diff := cmp.Diff(source.dumped(token), target.dumped(token)); diff != "" {
						t.Errorf("links first %t: %s (-source +restored):\n%s", linksFirst, token, diff)
					}
				}
				for token, events := range map[string]int{"k": 4, "k2": 3, "undone": 2, "dead": 1, "gone": 0, "out": 0, "phone": 0, "two": 3} {
					source.counts(token, events)
					target.counts(token, events)
				}
			}
			before := map[string]links.Cell{}
			for _, token := range restoredTokens {
				before[token] = target.cellOf(token)
			}
			target.restoreFrom(source, linksFirst)
			for _, token := range restoredTokens {
				if diff := cmp.Diff(before[token], target.cellOf(token)); diff != "" {
					t.Errorf("%s, restored again:\n%s", token, diff)
				}
			}
			redelivered := target.of("undone", 2, "k")
			redelivered.Receipt -= hour + 1
			target.apply(redelivered)
			target.counts("k", 4)
			target.unlink("open", "k")
			target.counts("k", 2)
			target.counts("open", 2)
			_, err := target.eng.OptIn(ctx, appID, "out")
			must.Succeed(t, err)
			if types, _, err := target.eng.OptedOut(ctx, appID, "phone"); err != nil || types != 0 {
				t.Errorf("the phone after the opt-in of its user: out of %v, %v", types, err)
			}
		})
	}
}

// A restore may die at any request: the next attempt completes it.
func TestRestoreOfLinksDies(t *testing.T) {
	onEveryBigtable(t, func(t *testing.T, open opener) {
		source := linkedSource(t, open)
		for fails, done := 0, false; !done; fails++ {
			done = true
			target := newLinked(t, open)
			target.clock = source.clock
			for _, token := range []string{"two", "dead"} {
				for _, e := range source.logOf(token) {
					target.importEvents(bought(token, e.Time))
				}
				target.read(token)
			}
			target.counts("k", 0) // a stored profile that lacks the links
			target.counts("k2", 0)
			for _, token := range []string{"dead", "two"} {
				a := newActor("restore")
				a.run(func(ctx context.Context) error { return target.restoreLinks(ctx, token, source.dumped(token)) })
				a.drive(dying(fails))
				done = done && a.err == nil
				must.Succeed(t, target.restoreLinks(ctx, token, source.dumped(token)))
			}
			target.counts("k", 1)
			target.counts("k2", 3)
			for _, token := range []string{"dead", "two"} {
				c := target.cellOf(token)
				if diff := cmp.Diff(source.dumped(token).Entries, target.dumped(token).Entries); diff != "" || len(c.Owes(links.Exclusion{})) > 0 {
					t.Errorf("died at request %d: %s owes %v, (-source +restored):\n%s", fails, token, c.Owes(links.Exclusion{}), diff)
				}
			}
		}
	})
}

// What contradicts the links of the app is left out, and the role of a token is never another one.
func TestRestoredLinksThatContradict(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		s.apply(s.of("a", 5, "k"), s.of("b", 5, "k"))
		s.unlink("b", "k")
		left := func(token string, entries ...links.Entry) int {
			t.Helper()
			n, err := profile.IdentitiesOf(s.eng).Restore(ctx, s.app(), token, links.Copy{Cell: links.Cell{Role: links.Anonymous, Entries: entries}})
			must.Succeed(t, err)
			return n
		}
		entry := func(known string, since, to int64) links.Entry {
			return links.Entry{Known: known, Since: s.clock - day + since*hour, To: s.clock - day + to*hour, Was: links.Open,
				From: s.clock - day + since*hour, At: s.clock - day + since*hour, By: "e"}
		}
		open := entry("k2", 6, 7)
		open.To = links.Open
		before := s.cellOf("a")
		if n := left("a", open, entry("k2", 4, 5)); n != 2 { // the lookback of k reaches further
			t.Errorf("%d entries are left out, want 2", n)
		}
		if got := s.cellOf("a"); !cmp.Equal(before, got) {
			t.Errorf("a is now %+v", got)
		}
		if n := left("b", entry("k", 4, 5), entry("k2", 7, 8)); n != 1 {
			t.Errorf("%d entries are left out of a token that was unlinked, want 1", n)
		}
		if n := left("a", entry("k2", -12*24, -11*24)); n != 0 {
			t.Errorf("%d entries of a time without another one are left out", n)
		}
		for token, from := range map[string]links.Copy{
			"k": {Cell: links.Cell{Role: links.Anonymous, Entries: []links.Entry{open}}},
			"a": {Cell: links.Cell{Role: links.Known, List: []links.Listed{{Token: "c", At: 1}}}},
		} {
			before := s.cellOf(token)
			_, err := profile.IdentitiesOf(s.eng).Restore(ctx, s.app(), token, from)
			if _, refused := errors.AsType[profile.LinkRefused](err); !refused || !cmp.Equal(before, s.cellOf(token)) {
				t.Errorf("%s of another role: %v, %+v", token, err, s.cellOf(token))
			}
		}
		// An opt-out of the token's own is not that of a user.
		s.clock++
		_, err := s.eng.OptOut(ctx, appID, "own")
		must.Succeed(t, err)
		_, err = profile.IdentitiesOf(s.eng).Restore(ctx, s.app(), "own", links.Copy{Cell: links.Cell{Role: links.Anonymous, OutBy: "k"},
			Deleted: affinity.Tombstone{DeletedUntil: 1, ReceivedUntil: 1}})
		must.Succeed(t, err)
		if types, _, err := s.eng.OptedOut(ctx, appID, "own"); s.cellOf("own").OutBy != "" || types != event.AllTypes || err != nil {
			t.Errorf("%+v, %v, %v", s.cellOf("own"), types, err)
		}
	})
}
