package consent

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

var two, _ = Setting{}.With([]Purpose{
	{Name: "personal", Default: true, Surfaces: []Surface{Rank, Feeds}},
	{Name: "ads", Types: []event.Type{event.View}, Facets: []string{"brand"}, Surfaces: []Surface{Segments, Rank}},
})

func at(ms int64) affinity.Tombstone {
	return affinity.Tombstone{DeletedUntil: ms, ReceivedUntil: ms + 10}
}

// law is the whole law: whether a facet of an event is used on a surface.
func law(s Setting, c Consents, on Surface, e affinity.Event, facet string, receipt int64) bool {
	for _, p := range s.Purposes {
		one, _, _ := c.of(p.Number)
		granted := one.State == Granted || one.State == Default && p.Default
		serves := (len(p.Types) == 0 || slices.Contains(p.Types, e.Type)) &&
			(len(p.Names) == 0 || slices.Contains(p.Names, e.Name)) &&
			(facet == "" || len(p.Facets) == 0 || slices.Contains(p.Facets, facet))
		if granted && serves && !one.Since.Covers(e.Time, receipt) && (on == Kept || slices.Contains(p.Surfaces, on)) {
			return true
		}
	}
	return false
}

func TestNumbersAreNotReused(t *testing.T) {
	next, err := two.With([]Purpose{{Name: "ads"}, {Name: "stats"}})
	if err != nil || next.Purposes[0].Number != 2 || next.Purposes[1].Number != 3 {
		t.Fatalf("%+v, %v", next, err)
	}
	again, err := next.With([]Purpose{{Name: "personal"}})
	if err != nil || again.Purposes[0].Number != 4 {
		t.Fatalf("%+v, %v: a name that comes back is another purpose", again, err)
	}
	full := Setting{Last: maxNumber}
	if _, err := full.With([]Purpose{{Name: "more"}}); err == nil {
		t.Error("a number beyond the last one is given")
	}
}

func TestSettingsThatAreRefused(t *testing.T) {
	long := string(make([]byte, maxName+1))
	for name, p := range map[string][]Purpose{
		"no name":   {{}},
		"twice":     {{Name: "a"}, {Name: "a"}},
		"a type":    {{Name: "a", Types: []event.Type{"sale"}}},
		"a surface": {{Name: "a", Surfaces: []Surface{"mail"}}},
		"a facet":   {{Name: "a", Facets: []string{""}}},
		"an event":  {{Name: "a", Names: []string{long}}},
		"too many":  make([]Purpose, maxPurposes+1),
	} {
		if _, err := two.With(p); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestUnserved(t *testing.T) {
	s, _ := Setting{}.With([]Purpose{{Name: "a", Types: []event.Type{event.Click}}, {Name: "b", Types: []event.Type{event.View}}})
	if got := s.Unserved(); !slices.Equal(got, []event.Type{event.Conversion}) {
		t.Errorf("%v serve nothing, want conversion", got)
	}
	if got := two.Unserved(); got != nil {
		t.Errorf("%v serve nothing", got)
	}
}

func TestAskTwiceChangesNothing(t *testing.T) {
	c, changes, err := two.Ask(nil, map[string]bool{"ads": true}, at(100), 100)
	if err != nil || !changes {
		t.Fatal(c, changes, err)
	}
	again, changes, _ := two.Ask(c, map[string]bool{"ads": true}, at(200), 200)
	if changes || !again.Same(c) {
		t.Errorf("granted twice: %+v after %+v", again, c)
	}
	// An explicit answer that equals the default changes nothing that counts.
	said, changes, _ := two.Ask(nil, map[string]bool{"personal": true}, at(100), 100)
	if changes || said[0].Since != (affinity.Tombstone{}) || said.Same(nil) {
		t.Errorf("%+v, %t", said, changes)
	}
	if _, _, err := two.Ask(nil, map[string]bool{"x": true}, at(1), 1); err == nil {
		t.Error("an unknown purpose is taken")
	}
}

// A purpose that is granted again begins empty, and so does one that falls back to its default.
func TestGrantedAgainBeginsEmpty(t *testing.T) {
	c, _, _ := two.Ask(nil, map[string]bool{"personal": false}, at(100), 100)
	early := affinity.Event{Type: event.Click, Time: 50}
	for name, next := range map[string]func() Consents{
		"granted": func() Consents {
			n, _, _ := two.Ask(c, map[string]bool{"personal": true}, at(200), 200)
			return n
		},
		"forgotten": func() Consents { n, _ := two.Forget(c, at(200), 200); return n },
	} {
		v, _ := two.Of(next(), Kept, 0)
		if v.Keeps(early.Type, "", 50, 50) || v.Keeps(early.Type, "", 205, 205) || !v.Keeps(early.Type, "", 205, 211) {
			t.Errorf("%s: %+v", name, v)
		}
		if v.Whole() != at(200).Alive() {
			t.Errorf("%s: whole from %d", name, v.Whole())
		}
		if v, _ := two.Of(next(), Kept, at(200).Alive()); v != nil {
			t.Errorf("%s: the change has left the window, and %+v is no view of all", name, v)
		}
	}
}

func TestUses(t *testing.T) {
	withdrawn, _, _ := two.Ask(nil, map[string]bool{"personal": false}, at(100), 100)
	both, _, _ := two.Ask(nil, map[string]bool{"ads": true}, at(100), 100)
	ads, _, _ := two.Ask(withdrawn, map[string]bool{"ads": true}, at(200), 200)
	for name, c := range map[string]struct {
		consents Consents
		on       Surface
		want     Use
	}{
		"the default, kept":           {nil, Kept, All},
		"the default on rank":         {nil, Rank, All},
		"the default in segments":     {nil, Segments, None},
		"withdrawn":                   {withdrawn, Rank, None},
		"both on rank":                {both, Rank, All},
		"both on feeds, the wide one": {both, Feeds, All},
		"both in segments":            {both, Segments, Part},
		"one in segments":             {ads, Segments, All},
		"one in feeds":                {ads, Feeds, None},
	} {
		if _, got := two.Of(c.consents, c.on, 0); got != c.want {
			t.Errorf("%s: use %d, want %d", name, got, c.want)
		}
	}
	if v, use := (Setting{}).Of(nil, Rank, 0); v != nil || use != All {
		t.Error("an app without purposes has a view")
	}
	allocations := testing.AllocsPerRun(100, func() { Setting{}.Of(nil, Rank, 0) })
	if allocations != 0 {
		t.Errorf("an app without purposes allocates %v times", allocations)
	}
}

// Every view equals the law, in random settings and histories of answers.
func TestViewsAreTheLaw(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	some := func(of ...string) (list []string) {
		for _, v := range of {
			if r.IntN(3) == 0 {
				list = append(list, v)
			}
		}
		return list
	}
	for range 2_000 {
		var purposes []Purpose
		for _, name := range []string{"a", "b", "c"}[:1+r.IntN(3)] {
			p := Purpose{Name: name, Default: r.IntN(2) == 0, Names: some("x", "y"), Facets: some("f", "g")}
			for _, typ := range some("view", "click") {
				p.Types = append(p.Types, event.Type(typ))
			}
			for _, on := range some("rank", "export", "rank") {
				p.Surfaces = append(p.Surfaces, Surface(on))
			}
			purposes = append(purposes, p)
		}
		s, err := Setting{}.With(purposes)
		if err != nil {
			t.Fatal(err)
		}
		var c Consents
		for now := range int64(r.IntN(5)) {
			now = 20 * (now + 1)
			if r.IntN(4) == 0 {
				c, _ = s.Forget(c, at(now), now)
			} else {
				c, _, _ = s.Ask(c, map[string]bool{purposes[r.IntN(len(purposes))].Name: r.IntN(2) == 0}, at(now), now)
			}
		}
		parsed, err := Parse(c.Append(nil))
		if err != nil || !slices.Equal(parsed, c) {
			t.Fatalf("%+v is read as %+v, %v", c, parsed, err)
		}
		for range 50 {
			e := affinity.Event{Time: 1 + r.Int64N(130), Type: []event.Type{event.View, event.Click}[r.IntN(2)],
				Name: []string{"x", "y"}[r.IntN(2)], Counts: []affinity.Count{{Facet: "f", N: 1}, {Facet: "g", N: 1}}}
			receipt := e.Time + r.Int64N(21) - 10
			for _, on := range []Surface{Kept, Rank, Export} {
				check(t, s, c, on, e, receipt)
			}
		}
	}
}

func check(t *testing.T, s Setting, c Consents, on Surface, e affinity.Event, receipt int64) {
	t.Helper()
	v, use := s.Of(c, on, 0)
	counts, ok := v.Counts(e, receipt)
	if use == All { // the surface takes what is kept
		kept, _ := s.Of(c, Kept, 0)
		counts, ok = kept.Counts(e, receipt)
	}
	if use == None {
		counts, ok = nil, false
	}
	if want := law(s, c, on, e, "", receipt); ok != want {
		t.Fatalf("%q: %+v of %d counts %t, want %t by %+v, %+v", on, e, receipt, ok, want, s, c)
	}
	if use == None {
		return
	}
	if v.Keeps(e.Type, e.Name, e.Time, receipt) != ok {
		t.Fatalf("%q: Keeps differs from Counts", on)
	}
	for _, facet := range []string{"f", "g"} {
		has := slices.ContainsFunc(counts, func(n affinity.Count) bool { return n.Facet == facet })
		if want := ok && law(s, c, on, e, facet, receipt); has != want {
			t.Fatalf("%q: facet %s of %+v counts %t, want %t by %+v, %+v", on, facet, e, has, want, s, c)
		}
	}
	if ok && e.Time >= v.Whole() && len(counts) < len(e.Counts) {
		t.Fatalf("%+v counts in part, after %d", e, v.Whole())
	}
	// A block does not know receipts: what is kept of a clear stretch counts for the same, whatever they are.
	kept, _ := s.Of(c, Kept, 0)
	late, lateOK := v.Counts(e, 1<<40)
	if kept.Keeps(e.Type, e.Name, e.Time, receipt) && !v.Unclear(e.Time, e.Time+1) &&
		(lateOK != ok || !slices.Equal(late, counts)) {
		t.Fatalf("%+v of %d is unclear, and %+v does not say so", e, receipt, v)
	}
}

func TestDamagedConsents(t *testing.T) {
	c, _, _ := two.Ask(nil, map[string]bool{"ads": true, "personal": false}, at(100), 100)
	b := c.Append(nil)
	for n := range b {
		if _, err := Parse(b[:n]); err == nil && n > 0 {
			t.Errorf("%d of %d bytes are taken", n, len(b))
		}
	}
	if _, err := Parse(append(b, 0)); err == nil {
		t.Error("more bytes are taken")
	}
}

// What two users allow is what each allows, for one purpose.
func TestBoth(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	random := func() (c Consents) {
		for now := range int64(r.IntN(4)) {
			name := []string{"personal", "ads"}[r.IntN(2)]
			c, _, _ = two.Ask(c, map[string]bool{name: r.IntN(2) == 0}, at(20*(now+1)), 20*(now+1))
		}
		return c
	}
	for range 2_000 {
		a, b := random(), random()
		both, _ := two.Of(two.Both(a, b), Kept, 0)
		e := affinity.Event{Time: 1 + r.Int64N(100), Type: []event.Type{event.View, event.Click}[r.IntN(2)]}
		receipt, want := e.Time+r.Int64N(21)-10, false
		for _, p := range two.Purposes {
			one := Setting{Purposes: []Purpose{p}, Last: 2}
			want = want || law(one, a, Kept, e, "", receipt) && law(one, b, Kept, e, "", receipt)
		}
		if got := both.Keeps(e.Type, e.Name, e.Time, receipt); got != want {
			t.Fatalf("%+v of %d counts %t by %+v and %+v", e, receipt, got, a, b)
		}
	}
}

// A process whose setting is older than a purpose keeps what users have said of it. What they have said of one that the
// app gave up goes with the next change.
func TestOlderSettingKeepsNewerConsents(t *testing.T) {
	older := settingOf(t, Purpose{Name: "gone"}, Purpose{Name: "ads"})
	newer, err := older.With([]Purpose{{Name: "ads"}, {Name: "mail"}})
	succeed(t, err)
	c, _, err := newer.Ask(nil, map[string]bool{"ads": true, "mail": true}, at(100), 100)
	succeed(t, err)
	c, _, err = older.Ask(c, map[string]bool{"ads": false, "gone": true}, at(200), 200)
	succeed(t, err)
	if got := newer.Says(c); !maps.Equal(got, map[string]bool{"ads": false, "mail": true}) || len(c) != 3 {
		t.Errorf("the consents are %v, %v", got, c)
	}
	if c, _ = older.Forget(c, at(300), 300); !maps.Equal(newer.Says(c), map[string]bool{"mail": true}) {
		t.Errorf("forgotten, the consents are %v", newer.Says(c))
	}
	if c, _ = newer.Forget(c, at(400), 400); len(c) != 2 {
		t.Errorf("%v has what was said of a purpose that the app gave up", c)
	}
	c, _, err = newer.Ask(nil, map[string]bool{"mail": true}, at(100), 100)
	succeed(t, err)
	if c, _, _ = older.Restore(c, Consents{{Purpose: 2, State: Granted, Asked: 5}}, at(500)); !newer.Says(c)["mail"] {
		t.Errorf("restored, the consents are %v", newer.Says(c))
	}
}

// Restores commute, and one that is repeated changes nothing, but for a purpose that begins now.
func TestRestoredConsents(t *testing.T) {
	s := settingOf(t, Purpose{Name: "ads"}, Purpose{Name: "personal", Default: true})
	never := affinity.Tombstone{}
	random := rand.New(rand.NewPCG(7, 7))
	one := func() (c Consents) {
		for number := uint8(1); number <= 2; number++ {
			if random.IntN(4) > 0 {
				since := at(100 * random.Int64N(4))
				if random.IntN(3) == 0 {
					since = never
				}
				c = append(c, Consent{Purpose: number, State: State(random.IntN(3)), Since: since, Asked: random.Int64N(4)})
			}
		}
		return c
	}
	for range 20_000 {
		c, a, b := one(), one(), one()
		x, _, _ := s.Restore(c, a, never)
		again, changes, begins := s.Restore(x, a, never)
		if changes || begins || !again.Same(x) {
			t.Fatalf("%v and then %v give %v, and once more %v", c, a, x, again)
		}
		x, _, _ = s.Restore(x, b, never)
		y, _, _ := s.Restore(c, b, never)
		if y, _, _ = s.Restore(y, a, never); !slices.Equal(x, y) {
			t.Fatalf("%v, %v, %v give %v or %v", c, a, b, x, y)
		}
		for i := range s.Purposes {
			was, _, _ := c.of(s.Purposes[i].Number)
			z, _, begins := s.Restore(c, a, at(1_000))
			is, _, _ := z.of(s.Purposes[i].Number)
			if s.Purposes[i].grants(is) && !s.Purposes[i].grants(was) && (!begins || is.Since != at(1_000)) {
				t.Fatalf("%v and then %v: %v does not begin now", c, a, is)
			}
		}
	}
}

func settingOf(t *testing.T, purposes ...Purpose) Setting {
	t.Helper()
	s, err := Setting{}.With(purposes)
	succeed(t, err)
	return s
}

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// An app without purposes pays nothing for them.
func TestNoPurposesCostNothing(t *testing.T) {
	e := affinity.Event{Type: event.View, Name: "Seen", Time: 1, Counts: []affinity.Count{{Facet: "color", Value: "Red", N: 1}}}
	row := []byte{1}
	if n := testing.AllocsPerRun(100, func() {
		var none Setting
		view, use := none.Of(nil, Kept, 0)
		counts, kept := view.Counts(e, 1)
		judged := none.Judge(Export).View(row)
		if use != All || !kept || len(counts) != 1 || !view.Keeps(e.Type, e.Name, 1, 1) || judged != nil ||
			view.Unclear(0, 9) || !view.Any() || none.Both(nil, nil) != nil || none.Counting(nil, e, "", 1) != nil {
			t.Fatal("not all counts")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCarriedConsent(t *testing.T) {
	s := settingOf(t, Purpose{Name: "personal", Types: []event.Type{event.View}}, Purpose{Name: "ads", Types: []event.Type{event.View, event.Click}, Names: []string{"Ad"}, Signals: []string{"ad_storage"}})
	for _, c := range []struct {
		typ    event.Type
		name   string
		denied []string
		want   bool
	}{
		{event.View, "Ad", nil, false},
		{event.View, "Ad", []string{"mail", "ad_user_data", "Ads"}, false},
		{event.View, "Ad", []string{"mail", "ad_storage"}, true},
		{event.View, "Ad", []string{"ads"}, true},
		{event.View, "Ad", []string{"personal"}, true},
		{event.View, "Seen", []string{"ads"}, false},
		{event.Click, "Ad", []string{"personal"}, false},
		{event.Conversion, "Ad", []string{"personal", "ads"}, false},
	} {
		if got := s.Denies(c.denied, c.typ, c.name); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if (Setting{}).Denies([]string{"ads"}, event.View, "Ad") {
		t.Error("an app without purposes drops an event")
	}
}
