package rankers

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/local/realdata"
)

const objects = 12

// random returns a training of 30 users and the history of another one.
func random(seed uint64) (*training, []backtest.Step) {
	r := rand.New(rand.NewPCG(seed, 0))
	steps := func() (all []backtest.Step) {
		for i := range 1 + r.IntN(6) {
			s := backtest.Step{Time: int64(i) * 1000}
			for range 1 + r.IntN(2) {
				s.Objects = append(s.Objects, int32(r.IntN(objects-1))) // nobody turns to the last one
			}
			slices.Sort(s.Objects)
			s.Objects = slices.Compact(s.Objects)
			all = append(all, s)
		}
		return all
	}
	t := &training{objects: objects, turned: make([]int, objects), cut: 10_000}
	for range 30 {
		t.users = append(t.users, steps())
	}
	t.users[7] = nil // whose steps are all after the cut
	for o := range t.turned {
		for _, u := range t.users {
			if turned(u, o) {
				t.turned[o]++
			}
		}
	}
	return t, steps()
}

func turned(steps []backtest.Step, o int) bool { return lastStep(steps, o) >= 0 }

// lastStep returns the last step that names an object, or -1.
func lastStep(steps []backtest.Step, o int) int {
	for i, s := range slices.Backward(steps) {
		if slices.Contains(s.Objects, int32(o)) {
			return i
		}
	}
	return -1
}

// weightOf is the recency of an object in a history, 0 if that lacks it.
func weightOf(history []backtest.Step, o int, r recency) float64 {
	i := lastStep(history, o)
	switch back := len(history) - 1 - i; {
	case i < 0:
		return 0
	case back == 0:
		return 1
	default:
		return math.Exp2(-float64(back) / float64(r))
	}
}

// Each method scores as its formula, written down once more without any of its shortcuts.
func TestMethodsAreTheirFormulas(t *testing.T) {
	for seed := range uint64(50) {
		train, history := random(seed)
		last := history[len(history)-1].Objects
		pair := func(a, b int) (n float64) {
			for _, u := range train.users {
				if turned(u, a) && turned(u, b) {
					n++
				}
			}
			return n
		}
		compare := func(what string, got backtest.Order, want func(b int) float64) {
			t.Helper()
			scores := make([]float64, objects)
			got.Score(history, scores)
			for b := range objects {
				if w := want(b); math.Abs(scores[b]-w) > 1e-9 {
					t.Fatalf("seed %d: %s: object %d has %v, want %v", seed, what, b, scores[b], w)
				}
			}
		}
		const reach = 2
		compare("sequential rules", newRules(train, reach), func(b int) (sum float64) {
			for _, a := range last {
				for _, u := range train.users {
					for i := range u {
						for j := i + 1; j < len(u) && j-i <= reach; j++ {
							if int(a) != b && slices.Contains(u[i].Objects, a) && slices.Contains(u[j].Objects, int32(b)) {
								sum += 1 / float64(j-i) / float64(train.turned[a])
							}
						}
					}
				}
			}
			return sum
		})
		for _, r := range recencies {
			compare("items", &items{newItems(train, 0).near, r}, func(b int) (sum float64) {
				for a := range objects {
					if a != b && pair(a, b) > 0 {
						sum += weightOf(history, a, r) * pair(a, b) / math.Sqrt(float64(train.turned[a]*train.turned[b]))
					}
				}
				return sum
			})
			compare("sessions", newSessions(train, r, 4, 5000).order(), referenceSessions(train, history, r, 4, 5000))
			compare("EASE", newLinear(train, 3, objects).with(r), func(b int) (sum float64) {
				inverse := invertedByGauss(gramOf(train, 3, pair))
				for a := range objects {
					if a != b {
						sum -= weightOf(history, a, r) * inverse[a][b] / inverse[b][b]
					}
				}
				return sum
			})
		}
	}
	if few, _ := random(1); newLinear(few, 3, objects-2) != nil {
		t.Error("EASE takes more objects than it may")
	}
}

// referenceSessions returns the score of each object by neighbours of users.
func referenceSessions(train *training, history []backtest.Step, r recency, size int, halfLife float64) func(b int) float64 {
	users := 0.0
	for _, u := range train.users {
		if len(u) > 0 {
			users++
		}
	}
	type neighbour struct {
		user     int
		likeness float64
	}
	var near []neighbour
	for i, u := range train.users {
		n, different := neighbour{user: i}, 0
		for o := range objects {
			if turned(u, o) {
				different++
				n.likeness += weightOf(history, o, r) * math.Log(users/float64(train.turned[o]))
			}
		}
		if n.likeness > 0 {
			n.likeness *= math.Exp2(-float64(train.cut-u[len(u)-1].Time)/halfLife) / math.Sqrt(float64(different))
			near = append(near, n)
		}
	}
	slices.SortStableFunc(near, func(a, b neighbour) int {
		switch d := b.likeness - a.likeness; {
		case math.Abs(d) < 1e-12:
			return 0
		case d < 0:
			return -1
		default:
			return 1
		}
	})
	return func(b int) (sum float64) {
		for _, n := range near[:min(len(near), size)] {
			if turned(train.users[n.user], b) {
				sum += n.likeness
			}
		}
		return sum
	}
}

// gramOf returns X^T X + lambda I over all objects: one that nobody turned to has a row of its own.
func gramOf(train *training, lambda float64, pair func(a, b int) float64) [][]float64 {
	gram := make([][]float64, objects)
	for a := range gram {
		gram[a] = make([]float64, objects)
		for b := range objects {
			gram[a][b] = pair(a, b)
		}
		gram[a][a] += lambda
	}
	return gram
}

// invertedByGauss inverts a matrix by elimination.
func invertedByGauss(a [][]float64) [][]float64 {
	n := len(a)
	inverse := make([][]float64, n)
	for i := range inverse {
		inverse[i] = make([]float64, n)
		inverse[i][i] = 1
	}
	for i := range n {
		pivot := a[i][i]
		for j := range n {
			a[i][j], inverse[i][j] = a[i][j]/pivot, inverse[i][j]/pivot
		}
		for k := range n {
			if factor := a[k][i]; k != i {
				for j := range n {
					a[k][j], inverse[k][j] = a[k][j]-factor*a[i][j], inverse[k][j]-factor*inverse[i][j]
				}
			}
		}
	}
	return inverse
}

// A matrix of several blocks times its inverse is the identity.
func TestInvert(t *testing.T) {
	for _, n := range []int{1, block - 1, block, 2*block + 5} {
		r := rand.New(rand.NewPCG(uint64(n), 0))
		root, a := make([]float64, n*n), make([]float64, n*n)
		for i := range root {
			root[i] = r.NormFloat64()
		}
		for i := range n {
			for j := range n {
				a[i*n+j] = dot(root[i*n:][:n], root[j*n:][:n])
			}
			a[i*n+i] += 1
		}
		inverse := slices.Clone(a)
		invert(inverse, n)
		for i := range n {
			for j := range n {
				want := 0.0
				if i == j {
					want = 1
				}
				if got := dot(a[i*n:][:n], inverse[j*n:][:n]); math.Abs(got-want) > 1e-8 {
					t.Fatalf("n %d: row %d times column %d is %v", n, i, j, got)
				}
			}
		}
	}
}

// The vector of a user solves the equations of the factorization, and the factors tell what a user
// turned to from the rest.
func TestFactors(t *testing.T) {
	train, history := random(3)
	f := newFactors(train, 4, 2)
	set := objectsOf(history)
	x := f.vector(f.square, set, f.objects)
	for j := range f.n {
		left, right := dot(f.square[j*f.n:][:f.n], x), 0.0
		for _, o := range set {
			v := f.objects[int(o)*f.n:][:f.n]
			left += f.alpha * v[j] * dot(v, x)
			right += (1 + f.alpha) * v[j]
		}
		if math.Abs(left-right) > 1e-9 {
			t.Errorf("equation %d: %v is not %v", j, left, right)
		}
	}
	scores := make([]float64, objects)
	f.Score(history, scores)
	var in, out float64
	for o, score := range scores {
		if slices.Contains(set, int32(o)) {
			in += score / float64(len(set))
		} else {
			out += score / float64(objects-len(set))
		}
	}
	if in <= out {
		t.Errorf("what the user turned to scores %v on average, all else %v", in, out)
	}
}

// On real data cases and figures are those of a program of 50 lines in another language, which reads
// the files by itself.
func TestRealData(t *testing.T) {
	const name = "clickstream"
	var all []backtest.Object
	for _, o := range realdata.Objects(t, name) {
		all = append(all, backtest.Object{ID: o.ID, Filters: o.Filters})
	}
	log, err := backtest.NewLog("p", all)
	if err != nil {
		t.Fatal(err)
	}
	for e := range realdata.Events(t, name) {
		log.Add(backtest.Event{User: e.UserToken, Time: e.Time, ID: e.ID(), Type: e.Type, Name: e.Name, Index: "p",
			ObjectIDs: e.ObjectIDs})
	}
	c, err := log.Cases(t.Context(), realdata.Strategy(t, name), backtest.Options{Within: backtest.None})
	if err != nil {
		t.Fatal(err)
	}
	if c.Len() != 2868 {
		t.Errorf("%d cases, want 2868", c.Len())
	}
	train := newTraining(c)
	for _, want := range []struct {
		order backtest.Order
		ndcg  float64
	}{{newRules(train, 20), 0.257106}, {newItems(train, 0), 0.237518}} {
		r, err := c.JudgeOrder(t.Context(), func() backtest.Order { return want.order })
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(r.NDCG-want.ndcg) > 1e-5 {
			t.Errorf("%T has the nDCG %.6f, the other program computed %.6f", want.order, r.NDCG, want.ndcg)
		}
	}
}
