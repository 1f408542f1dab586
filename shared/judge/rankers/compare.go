package rankers

import (
	"context"
	"fmt"

	"github.com/affinityengine/affinity/shared/judge/backtest"
)

// mostLinear is how many objects that users have turned to EASE takes. A matrix of so many has
// 288 MB, and its inverse takes about two minutes of a core.
const mostLinear = 6000

// training is what methods learn from.
type training struct {
	objects int
	users   [][]backtest.Step // by user, before the cut
	turned  []int             // by object: users who turned to it
	cut     int64             // ms
	both    *sparse
}

func newTraining(c *backtest.Cases) *training {
	t := &training{objects: c.Candidates(), users: c.Steps(), turned: make([]int, c.Candidates()), cut: c.Cut()}
	for _, steps := range t.users {
		for _, o := range objectsOf(steps) {
			t.turned[o]++
		}
	}
	return t
}

// together returns how many users turned to both objects of each pair.
func (t *training) together() *sparse {
	if t.both != nil {
		return t.both
	}
	t.both = newSparse(t.objects)
	for _, steps := range t.users {
		set := objectsOf(steps)
		for _, a := range set {
			for _, b := range set {
				if a != b {
					t.both.add(a, b, 1)
				}
			}
		}
	}
	return t.both
}

// Row is how well a ranking did.
type Row struct {
	Name       string // of the method, or of a strategy
	Parameters string // that the tuning cases chose; "" if there are none to choose
	// All is of all cases, Untouched of those that chose nothing.
	All, Untouched *backtest.Result
	Missing        string // why the method cannot rank here; "" if it can
}

// form is a method with one choice of its parameters.
type form struct {
	parameters string
	order      func() backtest.Order // makes one for each goroutine
}

// method is a method that learns once for each of its settings, which may have several forms.
type method struct {
	name, missing string // why it cannot rank if no form can
	settings      []func(*training) []form
}

func same(parameters string, o backtest.Order) form {
	return form{parameters, func() backtest.Order { return o }}
}

// methods lists what Compare judges, in the order of its rows.
func methods() []method {
	const day = 24 * 60 * 60 * 1000 // ms
	rulesOf := method{name: "sequential rules"}
	for _, reach := range []int{1, 5, 10, 20} {
		rulesOf.settings = append(rulesOf.settings, func(t *training) []form {
			return []form{same(fmt.Sprintf("reach %d", reach), newRules(t, reach))}
		})
	}
	itemsOf := method{name: "item-kNN, cosine", settings: []func(*training) []form{func(t *training) (forms []form) {
		for n := newItems(t, 0); len(forms) < len(recencies); {
			n = &items{n.near, recencies[len(forms)]}
			forms = append(forms, same(n.String(), n))
		}
		return forms
	}}}
	users := method{name: "session-kNN, idf"}
	for _, size := range []int{100, 500} {
		for _, days := range []float64{0, 14} {
			users.settings = append(users.settings, func(t *training) (forms []form) {
				for _, r := range recencies {
					of := fmt.Sprintf("%d neighbours, %s", size, r)
					if days > 0 {
						of += fmt.Sprintf(", half-life %gd", days)
					}
					forms = append(forms, form{of, newSessions(t, r, size, days*day).order})
				}
				return forms
			})
		}
	}
	ease := method{name: "EASE", missing: fmt.Sprintf("users have turned to more than %d objects", mostLinear)}
	for _, lambda := range []float64{30, 100, 300} {
		ease.settings = append(ease.settings, func(t *training) (forms []form) {
			if l := newLinear(t, lambda, mostLinear); l != nil {
				for _, r := range recencies {
					forms = append(forms, same(fmt.Sprintf("lambda %g, %s", lambda, r), l.with(r)))
				}
			}
			return forms
		})
	}
	als := method{name: "matrix factorization, ALS"}
	for _, n := range []int{16, 64} {
		for _, alpha := range []float64{1, 10} {
			als.settings = append(als.settings, func(t *training) []form {
				return []form{same(fmt.Sprintf("%d factors, alpha %g", n, alpha), newFactors(t, n, alpha))}
			})
		}
	}
	return []method{rulesOf, itemsOf, users, ease, als}
}

// Compare judges the strategies' own rankings and then each method. It calls step with the share that
// is done; step may be nil. The error is that of Cases.Judge, or that of ctx.
func Compare(ctx context.Context, c *backtest.Cases, given []backtest.Given,
	step func(what string, done float64)) ([]Row, error) {
	tuning, untouched := c.Split()
	if tuning.Len() == 0 || untouched.Len() == 0 {
		return nil, fmt.Errorf("%d cases are too few: some must choose parameters, and others judge them", c.Len())
	}
	peers := methods()
	done, steps := 0, len(given)
	for _, m := range peers {
		steps += len(m.settings)
	}
	tick := func(what string) {
		if step != nil {
			step(what, float64(done)/float64(steps))
		}
		done++
	}
	var rows []Row
	for _, g := range given {
		tick(g.Name)
		row, err := judged(Row{Name: g.Name}, c, untouched,
			func(c *backtest.Cases) (*backtest.Result, error) { return c.Judge(ctx, g.Strategy) })
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	t := newTraining(c)
	for _, m := range peers {
		best, chosen := (func() backtest.Order)(nil), Row{Name: m.name, Missing: m.missing}
		highest := -1.0
		for _, learn := range m.settings {
			tick(m.name)
			for _, f := range learn(t) {
				result, err := tuning.JudgeOrder(ctx, f.order)
				if err != nil {
					return nil, err
				}
				if result.NDCG > highest {
					highest, best, chosen.Parameters, chosen.Missing = result.NDCG, f.order, f.parameters, ""
				}
			}
		}
		row, err := chosen, error(nil)
		if best != nil {
			row, err = judged(chosen, c, untouched,
				func(c *backtest.Cases) (*backtest.Result, error) { return c.JudgeOrder(ctx, best) })
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// judged sets the results of a row.
func judged(r Row, all, untouched *backtest.Cases,
	judge func(*backtest.Cases) (*backtest.Result, error)) (Row, error) {
	var err error
	if r.All, err = judge(all); err == nil {
		r.Untouched, err = judge(untouched)
	}
	if err != nil {
		return r, fmt.Errorf("judge %s: %w", r.Name, err)
	}
	return r, nil
}
