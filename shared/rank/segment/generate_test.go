package segment_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

const (
	minute = int64(60_000)
	day    = 24 * 60 * minute
	t0     = 20_000 * day // an instant of packing
)

func halfLives(t testing.TB, texts ...string) []strategy.HalfLife {
	t.Helper()
	var all []strategy.HalfLife
	for _, text := range texts {
		h, err := strategy.ParseHalfLife(text)
		must.Succeed(t, err)
		all = append(all, h)
	}
	return all
}

// world is users with stored profiles.
type world struct {
	halfLives []strategy.HalfLife
	users     []string
	profiles  map[string]affinity.Profile
}

// generate makes users of whom each holds some of so many values, with scores that are often
// equal or in a simple relation. Profiles are of instants up to some days before t0.
func generate(r *rand.Rand, halfLives []strategy.HalfLife, users, values int) world {
	w := world{halfLives: halfLives, profiles: map[string]affinity.Profile{}}
	for i := range users {
		user := fmt.Sprintf("user-%05d", i/2)
		if i%2 == 0 {
			user += "+1" // which comes before the one without
		}
		p := affinity.Profile{
			StrategyVersion: 3, RetentionDays: 90, Known: true, HalfLives: halfLives, Until: math.MaxInt64,
			Anchor: t0 - int64(r.IntN(5))*day/4 - int64(r.IntN(2))*r.Int64N(day),
		}
		for v := range values {
			if r.IntN(values+v) >= values/2+1 {
				continue
			}
			a := affinity.Affinity{Facet: "brand", Value: fmt.Sprint("v", v)}
			points := float64(1 + r.IntN(3)*10)
			for _, h := range affinityHalfLives(halfLives) {
				age := float64(p.Anchor-(t0-2*day-int64(r.IntN(3))*day)) / h
				a.Scores = append(a.Scores, points*math.Exp2(-age))
			}
			if slices.Max(a.Scores) > 0 {
				p.Affinities = append(p.Affinities, a)
			}
		}
		slices.SortStableFunc(p.Affinities, func(a, b affinity.Affinity) int {
			if a.Scores[0] > b.Scores[0] {
				return -1
			}
			return 1
		})
		p.Total = len(p.Affinities)
		w.users = append(w.users, user)
		w.profiles[user] = p
	}
	return w
}

func affinityHalfLives(all []strategy.HalfLife) []float64 {
	if len(all) == 0 {
		return []float64{math.Inf(1)}
	}
	var ms []float64
	for _, h := range all {
		ms = append(ms, h.Millis())
	}
	return ms
}

// at returns the profiles as of an instant.
func (w world) at(now int64) map[string]affinity.Profile {
	all := map[string]affinity.Profile{}
	for user, p := range w.profiles {
		all[user] = p.At(now)
	}
	return all
}

func (w world) scoring() segment.Scoring {
	return segment.Scoring{Version: 3, RetentionDays: 90, HalfLives: w.halfLives}
}

// packed is a part with its rows.
type packed struct {
	segment.Part
	users []string
	lists map[event.Filter][]segment.Cell
	rows  map[segment.Kind]map[int][]segment.Cell
}

func pack(t testing.TB, p *segment.Packer, w world, users []string, delta bool, instant int64) packed {
	t.Helper()
	p.Begin(segment.PartID(instant), delta, instant)
	for _, user := range users {
		must.Succeed(t, p.Add(user, w.profiles[user].AppendBinary(nil)))
	}
	return finish(t, p, instant)
}

func finish(t testing.TB, p *segment.Packer, now int64) packed {
	t.Helper()
	out := packed{lists: map[event.Filter][]segment.Cell{}, rows: map[segment.Kind]map[int][]segment.Cell{}}
	part, err := p.Finish(now, func(row segment.Row) error {
		var cells []segment.Cell
		for _, c := range row.Cells {
			cells = append(cells, segment.Cell{Column: c.Column, Value: slices.Clone(c.Value)})
		}
		if row.Kind == segment.List {
			out.lists[event.Filter{Facet: row.Facet, Value: row.Value}] = cells
			return nil
		}
		if out.rows[row.Kind] == nil {
			out.rows[row.Kind] = map[int][]segment.Cell{}
		}
		out.rows[row.Kind][row.N] = cells
		return nil
	})
	must.Succeed(t, err)
	out.Part = part
	for n := range part.TokenRows() {
		row, err := segment.ParseTokens(out.rows[segment.Tokens][n][0].Value)
		must.Succeed(t, err)
		for i := range row.Len() {
			token, _ := row.At(i)
			out.users = append(out.users, token)
		}
	}
	return out
}

// read returns the cells of a term's list that a store would read.
func (p packed) read(t testing.TB, term segment.Term, threshold segment.Order) []segment.Cell {
	t.Helper()
	if p.Buckets > 0 {
		cells := p.rows[segment.Bucket][segment.BucketOf(term.Facet, term.Value, p.Buckets)]
		if len(cells) == 0 {
			return nil
		}
		lists, err := segment.Lists(cells[0].Value, []segment.Term{term})
		must.Succeed(t, err)
		return lists[0]
	}
	from, end := segment.BandColumns(term.HalfLife, term.Decay, threshold, p.Instant)
	var cells []segment.Cell
	for _, c := range p.lists[term.Filter] {
		if c.Column == segment.SmallColumn || c.Column >= from && c.Column < end {
			cells = append(cells, c)
		}
	}
	slices.SortFunc(cells, func(a, b segment.Cell) int {
		if a.Column < b.Column {
			return -1
		}
		return 1
	})
	return cells
}

// find returns the first ordinal whose token is not below one.
func (p packed) find(token string) int {
	n, _ := slices.BinarySearchFunc(p.users, token, segment.TokenOrder)
	return n
}

func compile(t testing.TB, where string, halfLives []strategy.HalfLife) *segment.Query {
	t.Helper()
	c, err := segment.Parse([]byte(where))
	must.Succeed(t, err)
	q, err := c.Compile(strategy.Strategy{HalfLives: halfLives})
	must.Succeed(t, err)
	return q
}

// query answers a query from parts as a server does. overlaid are judged by their profiles.
func query(t testing.TB, q *segment.Query, parts []packed, out []*segment.Set, overlaid []string, profiles map[string]affinity.Profile,
	at int64, limit int, after *segment.Cursor) (total int, page []segment.User) {
	t.Helper()
	var read []segment.User
	judge := func(user string) {
		if score, ok := q.Holds(profiles[user]); ok {
			total++
			if o := q.Order(score, at); !after.Passed(o, user) {
				read = append(read, segment.User{Order: o, Token: user, Part: -1})
			}
		}
	}
	for _, user := range overlaid {
		judge(user)
	}
	described := make([]segment.Part, len(parts))
	hits := make([][]segment.Hit, len(parts))
	for i, p := range parts {
		in := segment.Input{Part: p.Part, Out: out[i], After: after}
		for n, term := range q.Terms {
			in.Lists = append(in.Lists, p.read(t, term, q.Lists(n, at)))
		}
		if after != nil {
			if in.AfterOrdinal = p.find(after.Token); slices.Contains(p.users, after.Token) {
				in.AfterOrdinal++
			}
		}
		f, err := q.Scan(in, at, limit)
		must.Succeed(t, err)
		total += f.Total
		for _, o := range f.Edge {
			judge(p.users[o])
		}
		described[i], hits[i] = p.Part, f.Hits
	}
	users := segment.Candidates(described, hits, read, limit)
	for i, u := range users {
		if u.Part >= 0 {
			users[i].Token = parts[u.Part].users[u.Ordinal]
		}
	}
	return total, segment.Page(users, limit)
}
