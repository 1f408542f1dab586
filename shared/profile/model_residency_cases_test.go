package profile_test

import (
	"flag"
	"fmt"
	"hash/maphash"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/local/race"
)

// residencyMost bounds the states of a case: go test ./shared/profile -run TestModelOfResidency -residency-most 30000000
var residencyMost = flag.Int("residency-most", 100_000, "how many states of a case TestModelOfResidency visits at most")

// next returns what a process may do: its step, the same with a lost answer, its death, or a beginning with an older
// location.
func (m *placeModel) next(w *placeWorld, n int, each func(next *placeWorld, variant uint8, said, bad string)) {
	p := &w.procs[n]
	if p.kind == placeNobody || p.step == placeEnded || p.after > 0 && p.step == placeBegins && w.procs[p.after-1].step != placeEnded {
		return
	}
	after := *w
	t := placeTurn{placeModel: m, w: &after, p: &after.procs[n], n: n}
	t.step()
	if t.blocked {
		return
	}
	each(&after, 0, t.said, t.bad)
	if t.atomic && w.lost > 0 {
		lost := after
		lost.procs[n], lost.lost = *p, w.lost-1
		switch p.step { // who does not know the answer looks again
		case moverFences, moverLeaves:
			lost.procs[n].step = moverReads
		case placeIsBorn:
			lost.procs[n].step = placeLocates
		}
		each(&lost, 1, t.said+" (answer lost)", "")
	}
	if w.crashes > 0 && p.step != placeBegins && p.kind != placeReader && p.kind != placeCaches {
		dead := *w
		dead.crashes--
		again := placeProc{kind: p.kind, event: p.event, rule: p.rule, to: p.to, must: p.must, after: p.after}
		dead.procs[n] = again
		each(&dead, 2, "dies, and another one begins", "")
	}
	if p.step != placeBegins || p.kind != placeMessage && p.kind != placeReader && p.kind != placeDeleter {
		return
	}
	begin := func(variant uint8, l location) {
		old := *w
		q := &old.procs[n]
		t := placeTurn{placeModel: m, w: &old, p: q, n: n}
		t.find() // begins
		q.found = l
		t.arrive()
		each(&old, variant, fmt.Sprintf("begins with the location %+v", l), "")
	}
	if cached := w.before; w.stale && cached.stamp != 0 {
		begin(3, cached)
	}
	if w.copied != 0 && (w.where.stamp == 0 || w.copied != w.where.region+1) {
		begin(4, location{region: w.copied - 1})
	}
}

// always holds in every state.
func (w *placeWorld) always() string {
	if w.rows[0].here() && w.rows[1].here() {
		return "two rows count"
	}
	return ""
}

// atEnd holds when all processes have ended.
func (m *placeModel) atEnd(w *placeWorld) string {
	for n := range w.procs {
		if p := &w.procs[n]; p.kind != placeNobody && p.kind != placeCaches && p.step != placeEnded {
			return ""
		}
	}
	at, found := uint8(0), false
	for r := range uint8(placeRegions) {
		if w.rows[r].here() {
			at, found = r, true
		}
	}
	for e := range uint8(placeEvents) {
		want := w.acked&bitOf(e) != 0 && e >= w.deleted
		if want && (!found || !w.log[at][e] || e < w.rows[at].deleted) {
			return fmt.Sprintf("at the end event %d counts nowhere", e)
		}
		if w.aged && found && w.log[1-at][e] && w.rows[1-at] == (placeRow{}) {
			return fmt.Sprintf("at the end event %d lies in a region where no row says so", e)
		}
		if m.rest && found && w.log[1-at][e] {
			return fmt.Sprintf("at the end event %d lies in a region where the token does not live", e)
		}
	}
	if w.aged && w.where.stamp == 0 && w.copied != 0 {
		return "at the end there is a copy of no location"
	}
	if m.rest && found && w.where.stamp != 0 && w.where.region != at {
		return "at the end the location is wrong"
	}
	if r := &w.rows[at]; found && r.stored && r.under == r.deleted && r.at == r.ticket {
		for e := range uint8(placeEvents) {
			if want := w.acked&bitOf(e) != 0 && e >= w.deleted; want && r.counts&bitOf(e) == 0 {
				return fmt.Sprintf("at the end the stored profile lacks event %d", e)
			}
		}
	}
	return ""
}

// search visits all states, those of fewer steps first.
func (m *placeModel) search(most int) (states int, way string, done bool) {
	type node struct {
		parent int32
		said   string
	}
	type visit struct {
		world placeWorld
		node  int32
	}
	seed := maphash.MakeSeed()
	seen := map[uint64]struct{}{maphash.Comparable(seed, m.start): {}}
	nodes := []node{{parent: -1}}
	for level := []visit{{m.start, 0}}; len(level) > 0; {
		var next []visit
		for i := range level {
			v := &level[i]
			for n := range placeProcs {
				m.next(&v.world, n, func(w *placeWorld, _ uint8, said, bad string) {
					hash := maphash.Comparable(seed, *w)
					if _, old := seen[hash]; way != "" || old && bad == "" {
						return
					}
					seen[hash] = struct{}{}
					nodes = append(nodes, node{v.node, fmt.Sprint(placeKinds[w.procs[n].kind], " ", n, ": ", said)})
					if bad == "" {
						bad = w.always()
					}
					if bad == "" {
						bad = m.atEnd(w)
					}
					if bad == "" {
						next = append(next, visit{*w, int32(len(nodes) - 1)})
						return
					}
					var steps []string
					for at := int32(len(nodes) - 1); at > 0; at = nodes[at].parent {
						steps = append([]string{nodes[at].said}, steps...)
					}
					way = "\n\t" + strings.Join(append(steps, bad), "\n\t")
				})
			}
			if way != "" {
				return len(seen), way, true
			}
		}
		if len(seen) > most {
			return len(seen), "", false
		}
		level = next
	}
	return len(seen), "", true
}

// living is a token that lives in region 0, with event 0; unborn is one that nobody knows; early is one from before
// locations. The last process makes caches fresh.
func living(procs ...placeProc) placeWorld {
	w := unborn(procs...)
	w.where, w.stamps, w.copied = location{0, 1}, 1, 1
	w.rows[0] = placeRow{state: ownedHere, epoch: 1, ticket: 1, stored: true, at: 1, counts: 1}
	w.log[0][0], w.acked = true, 1
	return w
}

// givenUp is living with what a move that was given up has left in region 1.
func givenUp(procs ...placeProc) placeWorld {
	w := living(procs...)
	w.log[1][0] = true
	return w
}

func unborn(procs ...placeProc) placeWorld {
	w := placeWorld{}
	copy(w.procs[:], procs)
	w.procs[placeProcs-1] = placeProc{kind: placeCaches}
	return w
}

func early(procs ...placeProc) placeWorld {
	w := living(procs...)
	w.where, w.stamps, w.copied = location{}, 0, 0
	w.rows[0].state, w.rows[0].epoch = unowned, 0
	return w
}

// forgettable is a token in a region whose events were deleted long ago.
func forgettable(region uint8, procs ...placeProc) placeWorld {
	w := unborn(procs...)
	w.where, w.stamps, w.copied, w.aged = location{region, 1}, 1, region+1, true
	w.tried, w.deleted = 1, 1
	w.rows[region] = placeRow{state: ownedHere, epoch: 1, ticket: 2, deleted: 1}
	return w
}

// neverBegan is a token with an old location in region 1 and no row.
func neverBegan(procs ...placeProc) placeWorld {
	w := forgettable(1, procs...)
	w.rows[1] = placeRow{}
	return w
}

func (w placeWorld) dying(crashes, lost uint8) placeWorld {
	w.crashes, w.lost = crashes, lost
	return w
}

// arrivesBy is a message of an event, which brings a token to life in a region.
func arrivesBy(event, rule uint8) placeProc {
	return placeProc{kind: placeMessage, event: event, rule: rule}
}

// namesKnown is a message of an event that names a known user who lives in region 1.
func namesKnown(event uint8) placeProc {
	return placeProc{kind: placeMessage, event: event, to: 1, must: true}
}

func movesTo(region uint8) placeProc { return placeProc{kind: placeMover, to: region} }
func deletesTo(event, rule uint8) placeProc {
	return placeProc{kind: placeDeleter, event: event, rule: rule}
}

func (p placeProc) behind(n uint8) placeProc {
	p.after = n + 1
	return p
}

var (
	readsPlace    = placeProc{kind: placeReader}
	forgetsAtHome = placeProc{kind: placeForgetter}
	forgetsAway   = placeProc{kind: placeForgetter, to: 1}
)

var residencyCases = map[string]placeModel{
	"two births":                         {start: unborn(arrivesBy(0, 0), arrivesBy(1, 1), readsPlace).dying(1, 1)},
	"a birth and a deletion":             {start: unborn(arrivesBy(1, 1), deletesTo(1, 0), readsPlace).dying(1, 1)},
	"a birth and a mover":                {start: unborn(arrivesBy(0, 0), arrivesBy(1, 0), movesTo(1), readsPlace)},
	"a token from before, two rules":     {start: early(arrivesBy(1, 1), movesTo(1), readsPlace)},
	"a move, a message, a reader":        {start: living(movesTo(1), arrivesBy(1, 0), readsPlace), rest: true},
	"a mover and a message that die":     {start: living(movesTo(1), arrivesBy(1, 0)).dying(1, 1), rest: true},
	"two movers to one region":           {start: living(movesTo(1), movesTo(1), arrivesBy(1, 0)), rest: true},
	"a move, a deletion, a reader":       {start: living(movesTo(1), deletesTo(1, 0), readsPlace)},
	"there and back":                     {start: living(movesTo(1), movesTo(0).behind(0), arrivesBy(1, 0)), rest: true},
	"there and back, at any time":        {start: living(movesTo(1), movesTo(0), arrivesBy(1, 0))},
	"an event of a known user":           {start: living(namesKnown(1), movesTo(1).behind(0), readsPlace), rest: true},
	"a known user and a policy":          {start: living(namesKnown(1), movesTo(1), readsPlace), rest: true},
	"a known user's first event":         {start: unborn(namesKnown(1), arrivesBy(0, 0), movesTo(1).behind(0)).dying(1, 0), rest: true},
	"a known user, a deletion, a death":  {start: living(namesKnown(1), deletesTo(1, 0)).dying(1, 1)},
	"a token is forgotten":               {start: forgettable(0, forgetsAtHome, arrivesBy(1, 1), readsPlace).dying(1, 1)},
	"a token away is forgotten":          {start: forgettable(1, forgetsAway, arrivesBy(1, 0), readsPlace).dying(1, 1)},
	"a token is forgotten, two messages": {start: forgettable(1, forgetsAway, arrivesBy(1, 1), arrivesBy(1, 0)).dying(1, 0)},
	"a token is forgotten, and moves":    {start: forgettable(1, forgetsAway, movesTo(0), arrivesBy(1, 0))},
	"a token is forgotten, and deleted":  {start: forgettable(1, forgetsAway, deletesTo(1, 0), arrivesBy(1, 1)).dying(1, 0)},
	"a token that never began":           {start: neverBegan(forgetsAway, arrivesBy(1, 0), movesTo(0)).dying(1, 0)},
	"a move was given up":                {start: givenUp(movesTo(0), arrivesBy(1, 0), movesTo(1).behind(0)).dying(1, 0), rest: true},
	"a move was given up, and another":   {start: givenUp(movesTo(0), movesTo(1), readsPlace).dying(1, 0)},
	"two forget a token":                 {start: forgettable(1, forgetsAway, forgetsAway, arrivesBy(1, 0)).dying(1, 0)},
}

// The protocol of residency holds in every state of its cases.
func TestModelOfResidency(t *testing.T) {
	if race.On {
		t.Skip("the model is one goroutine, and its states would take gigabytes under the race detector")
	}
	all := 0
	for name, m := range residencyCases {
		states, way, done := m.search(*residencyMost)
		t.Log(name, states, done)
		if all += states; way != "" {
			t.Errorf("%s: %s", name, way)
		}
	}
	t.Log(all, "states")
}

// Each simpler form fails in a case.
func TestModelOfResidencyFindsHoles(t *testing.T) {
	if race.On {
		t.Skip("the model is one goroutine, and its states would take gigabytes under the race detector")
	}
	for name, m := range map[string]placeModel{
		"each brings the token to life by its own rule": {
			start: unborn(arrivesBy(0, 0), arrivesBy(1, 1)), placeRules: placeRules{bornByRule: true, adoptsBlindly: true}},
		"an owner without another look at the location": {
			start: living(movesTo(1), arrivesBy(1, 0)), placeRules: placeRules{adoptsBlindly: true, noWait: true}},
		"a mover of a token without an owner changes the location alone": {
			start: unborn(arrivesBy(0, 0), movesTo(1), arrivesBy(1, 1)), placeRules: placeRules{movesUnborn: true}},
		"the location changes before the token has arrived": {
			start: living(movesTo(1), arrivesBy(1, 0), readsPlace), placeRules: placeRules{locatesFirst: true}},
		"what is left is dropped at once": {
			start: living(movesTo(1), arrivesBy(1, 0), readsPlace), placeRules: placeRules{noWait: true}},
		"the wait is for caches alone": {
			start: living(movesTo(1), arrivesBy(1, 0), readsPlace), placeRules: placeRules{wakesTooEarly: true}},
		"a way back onto what was left": {
			start: living(movesTo(1), movesTo(0), arrivesBy(1, 0)), placeRules: placeRules{movesBack: true}},
		"the location is removed before the row is stripped": {
			start: forgettable(0, forgetsAtHome, arrivesBy(1, 1), arrivesBy(1, 1)), placeRules: placeRules{unlocatesFirst: true}},
		"a row is stripped although a ticket was drawn": {
			start: forgettable(0, forgetsAtHome, arrivesBy(1, 1), readsPlace), placeRules: placeRules{stripsBlindly: true}},
		"a row gets an owner under an old location": {
			start: forgettable(1, forgetsAway, arrivesBy(1, 0), arrivesBy(1, 0)), placeRules: placeRules{renewsNothing: true}},
		"the copy is removed after the wait": {
			start: forgettable(1, forgetsAway, arrivesBy(1, 0)).dying(1, 0), placeRules: placeRules{uncopiesLate: true}},
		"a row is erased at once": {
			start: forgettable(1, forgetsAway, arrivesBy(1, 0)).dying(1, 0), placeRules: placeRules{erasesAtOnce: true}},
		"a deletion of nobody writes nothing": {
			start: unborn(arrivesBy(0, 0), deletesTo(1, 0), readsPlace), placeRules: placeRules{deletesNobody: true}},
		"a reader trusts a cached location": {
			start: living(movesTo(1), readsPlace), placeRules: placeRules{trustsCache: true, wakesTooEarly: true}},
		"the copy changes after the location, and nobody looks at it": {
			start: living(movesTo(1), arrivesBy(1, 0)).dying(1, 0), rest: true, placeRules: placeRules{copiesLater: true, trustsCopies: true}},
		"what a move left is dropped although another has left for it": {
			start: givenUp(movesTo(0), movesTo(1)).dying(1, 0), placeRules: placeRules{trustsPlace: true}},
		"a copy is repaired under a location that is old": {
			start: givenUp(movesTo(0), movesTo(1), readsPlace).dying(1, 0), placeRules: placeRules{repairsFirst: true}},
		"nobody looks for a row from before locations": {
			start: early(arrivesBy(1, 1), readsPlace), placeRules: placeRules{homeUnseen: true}},
	} {
		states, way, _ := m.search(3 * *residencyMost)
		if t.Log(name, states, way); way == "" {
			t.Errorf("%s: no hole in %d states", name, states)
		}
	}
}
