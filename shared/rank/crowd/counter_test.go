package crowd_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/rank/crowd"
)

const minute = 60_000

// recorder is a Sink that keeps what it receives.
type recorder struct {
	events map[uint32][]int64
	links  [crowd.Kinds]map[[2]uint32]int64
	own    map[uint32]int64
}

func newRecorder() *recorder {
	return &recorder{map[uint32][]int64{}, [crowd.Kinds]map[[2]uint32]int64{{}, {}, {}, {}}, map[uint32]int64{}}
}

func (r *recorder) Event(object uint32, time int64) {
	r.events[object] = append(r.events[object], time)
}

func (r *recorder) Link(kind crowd.Kind, first, second, n uint32) {
	r.links[kind][[2]uint32{first, second}] += int64(n)
}

func (r *recorder) Own(object, n uint32) { r.own[object] += int64(n) }

// name is the objectID of a number; names sort as the numbers do.
func name(object uint32) string { return fmt.Sprintf("o%06d", object) }

// objects returns what the recorder has received as Reference returns it.
func (r *recorder) objects(asOf int64, halfLife float64) (map[string]float64, map[string]crowd.Object) {
	counts, objects := map[string]float64{}, map[string]crowd.Object{}
	for o, times := range r.events {
		for _, t := range times {
			counts[name(o)] += math.Exp2(-float64(asOf-t) / halfLife)
		}
		objects[name(o)] = crowd.Object{Events: int64(len(times))}
	}
	for kind, links := range r.links {
		for p, n := range links {
			if kind == int(crowd.Together) {
				n = crowd.Weight(n, r.own[p[0]], r.own[p[1]])
			}
			if o := objects[name(p[0])]; n > 0 {
				o.Links[kind] = append(o.Links[kind], crowd.Pair{ObjectID: name(p[1]), Count: n})
				objects[name(p[0])] = o
			}
		}
		for _, o := range objects {
			slices.SortFunc(o.Links[kind], func(p, q crowd.Pair) int {
				return cmp.Or(int(q.Count-p.Count), strings.Compare(p.ObjectID, q.ObjectID))
			})
		}
	}
	return counts, objects
}

type step struct {
	time    int64
	bought  bool
	objects []uint32
}

func events(steps []step) []crowd.Event {
	all := make([]crowd.Event, len(steps))
	for i, s := range steps {
		all[i].Time, all[i].Bought = s.time, s.bought
		for _, o := range s.objects {
			all[i].ObjectIDs = append(all[i].ObjectIDs, name(o))
		}
	}
	return all
}

func genUser(t *rapid.T) []step {
	// Times crowd around midnight, where the budgets of two days meet.
	time := int64(86_400_000 - 40*minute)
	catalog := rapid.SampledFrom([]uint32{2, 5, 25, 60}).Draw(t, "catalog")
	gap := rapid.SampledFrom([]int64{0, 1, 20_000, 3 * minute, 31 * minute, 7 * 3_600_000})
	bought := rapid.Map(rapid.IntRange(0, 2), func(n int) bool { return n == 0 })
	var user []step
	for range rapid.IntRange(0, 120).Draw(t, "events") {
		if rapid.IntRange(0, 2).Draw(t, "moves") > 0 {
			time += gap.Draw(t, "gap")
		}
		user = append(user, step{time, bought.Draw(t, "bought"), rapid.SliceOfN(rapid.Uint32Range(0, catalog), 0, 20).Draw(t, "objects")})
	}
	return user
}

func compareWithReference(t rapid.TB, users [][]step) {
	t.Helper()
	const asOf, halfLife = 3 * 86_400_000, 86_400_000
	r := newRecorder()
	c := crowd.NewCounter(r)
	var all [][]crowd.Event
	for _, user := range users {
		for _, s := range user {
			c.Add(s.time, s.bought, s.objects)
		}
		c.End()
		all = append(all, events(user))
	}
	wantCounts, wantObjects := crowd.Reference(all, asOf, halfLife)
	gotCounts, gotObjects := r.objects(asOf, halfLife)
	if diff := gocmp.Diff(wantCounts, gotCounts, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Fatalf("counts (-reference +counter):\n%s", diff)
	}
	if diff := gocmp.Diff(wantObjects, gotObjects); diff != "" {
		t.Fatalf("objects (-reference +counter):\n%s", diff)
	}
}

func TestCounterEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		compareWithReference(t, [][]step{genUser(t), genUser(t)})
	})
}

// Bursts make a Counter count pairs before it has seen all that may follow.
func TestCounterEqualsReferenceInBursts(t *testing.T) {
	events := race.Or(3000, 1000)
	for name, at := range map[string]func(i int) int64{
		"one instant":  func(int) int64 { return 86_400_000 - 1 },
		"one minute":   func(i int) int64 { return 86_400_000 - 100 + int64(i)/4 },
		"ten minutes":  func(i int) int64 { return 86_400_000 - 5*minute + int64(i)*200 },
		"some minutes": func(i int) int64 { return 86_400_000 + int64(i/500)*minute },
	} {
		for _, catalog := range []uint32{1, 21, 22, 2000} {
			t.Run(name+" of "+strconv.Itoa(int(catalog)), func(t *testing.T) {
				var user []step
				for i := range events {
					user = append(user, step{at(i), false, []uint32{uint32(i*7) % catalog}})
				}
				compareWithReference(t, [][]step{user, user[events-100:]})
			})
		}
	}
}

// The definition, by hand.
func TestPairs(t *testing.T) {
	for _, test := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"an event with itself, both ways", []step{{0, false, []uint32{1, 2}}}, "12 21"},
		{"two events at one instant, both ways", []step{{0, false, []uint32{1}}, {0, false, []uint32{2}}}, "12 21"},
		{"a later event follows", []step{{0, false, []uint32{1}}, {1, false, []uint32{2}}}, "12"},
		{"30 minutes later", []step{{0, false, []uint32{1}}, {30 * minute, false, []uint32{2}}}, "12"},
		{"after 30 minutes", []step{{0, false, []uint32{1}}, {30*minute + 1, false, []uint32{2}}}, ""},
		{"not with itself", []step{{0, false, []uint32{1}}, {1, false, []uint32{1}}}, ""},
		{"once for each first event", []step{{0, false, []uint32{1}}, {1, false, []uint32{1}}, {2, false, []uint32{2}}, {3, false, []uint32{2}}}, "12 12"},
		{"an object named twice", []step{{0, false, []uint32{1, 1, 2}}}, "12 21"},
	} {
		r := newRecorder()
		c := crowd.NewCounter(r)
		for _, s := range test.steps {
			c.Add(s.time, s.bought, s.objects)
		}
		c.End()
		var got []string
		for _, p := range slices.SortedFunc(maps.Keys(r.links[crowd.Follows]), func(p, q [2]uint32) int { return slices.Compare(p[:], q[:]) }) {
			for range r.links[crowd.Follows][p] {
				got = append(got, fmt.Sprint(p[0], p[1])[:1]+fmt.Sprint(p[1]))
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: pairs %q, want %q", test.name, got, test.want)
		}
	}
}

// A Counter holds a bounded number of events, whatever a user does.
func TestCounterIsBounded(t *testing.T) {
	for name, at := range map[string]func(i int) int64{
		"one instant":  func(int) int64 { return 0 },
		"one minute":   func(i int) int64 { return int64(i) / 10 },
		"two days":     func(i int) int64 { return 86_400_000 - 1000 + int64(i)/50 },
		"one a second": func(i int) int64 { return int64(i) * 1000 },
	} {
		for _, catalog := range []int{1, 2, 21, 22, 50_000} {
			c := crowd.NewCounter(newRecorder())
			for i := range race.Or(100_000, 20_000) {
				c.Add(at(i), i%2 == 0, []uint32{uint32(i % catalog)})
				if n := c.Waiting(); n > 5000 {
					t.Fatalf("%s, %d objects: %d wait after %d events", name, catalog, n, i)
				}
			}
			c.End()
		}
	}
}

// A robot adds at most MaxEvents to the count of an object and MaxPairs pairs a
// day.
func TestRobotIsBounded(t *testing.T) {
	r := newRecorder()
	c := crowd.NewCounter(r)
	for i := range 200_000 { // one day, two events a second
		c.Add(int64(i)*430, true, []uint32{uint32(i % 3), uint32(i % 7)})
		if n := c.Waiting(); n > 5000 {
			t.Fatalf("%d objects wait after %d events", n, i)
		}
	}
	if n := c.End(); n > 7*crowd.MaxEvents {
		t.Errorf("%d events count, want at most %d", n, 7*crowd.MaxEvents)
	}
	for o, times := range r.events {
		if len(times) != crowd.MaxEvents {
			t.Errorf("object %d has %d events, want %d", o, len(times), crowd.MaxEvents)
		}
	}
	var pairs, sequences, bought int64
	for _, n := range r.links[crowd.Follows] {
		pairs += n
	}
	for _, n := range r.links[crowd.Sequence] {
		sequences += n
	}
	for _, n := range r.links[crowd.Bought] {
		bought += n
	}
	if bought == 0 || bought > 2*50 {
		t.Errorf("baskets of two count %d, want at most 50, both ways", bought)
	}
	if pairs != crowd.MaxPairs || sequences == 0 || sequences > 2*500*2520 {
		t.Errorf("%d pairs, want %d; sequences count %d, want at most 500", pairs, crowd.MaxPairs, sequences)
	}
}

// The definitions of sequences and sets, by hand.
func TestSequencesAndSets(t *testing.T) {
	var long, many []step
	for i := range uint32(12) {
		long = append(long, step{int64(i) * 86_400_000, false, []uint32{i}})
	}
	for i := range uint32(60) {
		many = append(many, step{int64(i) * 86_400_000, false, []uint32{i}})
	}
	count := func(steps []step) *recorder {
		r := newRecorder()
		c := crowd.NewCounter(r)
		for _, s := range steps {
			c.Add(s.time, s.bought, s.objects)
		}
		c.End()
		return r
	}
	for _, test := range []struct {
		name          string
		steps         []step
		first, second uint32
		want          int64
	}{
		{"the next step, however late", long, 0, 1, 2520},
		{"two steps later", long, 0, 2, 1260},
		{"ten steps later", long, 0, 10, 252},
		{"eleven steps later", long, 0, 11, 0},
		{"not backwards", long, 1, 0, 0},
		{"one instant, both ways", []step{{0, false, []uint32{1}}, {0, false, []uint32{2}}}, 2, 1, 2520},
		{"an event with itself", []step{{0, false, []uint32{1, 2}}}, 1, 2, 2520},
		{"each step again", []step{{0, false, []uint32{1}}, {1, false, []uint32{1}}, {2, false, []uint32{2}}}, 1, 2, 2520 + 1260},
		{"once a step", []step{{0, false, []uint32{1}}, {1, false, []uint32{2}}, {1, false, []uint32{2}}}, 1, 2, 2520},
	} {
		if got := count(test.steps).links[crowd.Sequence][[2]uint32{test.first, test.second}]; got != test.want {
			t.Errorf("%s: %d to %d counts %d, want %d", test.name, test.first, test.second, got, test.want)
		}
	}
	r := count(many)
	if got := r.links[crowd.Together][[2]uint32{0, 49}]; got != 201 || r.own[0] != 201 || r.own[59] != 1008 {
		t.Errorf("two of a set of 50 count %d, one of it %d, and one of the next 10 counts %d", got, r.own[0], r.own[59])
	}
	if got := r.links[crowd.Together][[2]uint32{49, 50}]; got != 0 {
		t.Errorf("objects of two sets count %d together", got)
	}
}
