package query

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/googleapis/gax-go/v2"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
)

const (
	// auditConditions is how many conditions an audit asks for.
	auditConditions = 24
	// auditOthers is how many of the users that a condition finds an audit looks at beside
	// the sample: users who are found and should not be are rarely in a sample.
	auditOthers = 100
	// near is the relative difference of scores that postings, which hold 48 bits of a
	// score, and decay in another order of operations explain.
	near = 1e-9
)

// auditPauses come before each further query of a condition whose answer differs, so that
// events under way are written. A difference counts if all answers have it.
var auditPauses = []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}

// Audit is what an audit of an app's segments finds.
type Audit struct {
	Planned     int // conditions
	Conditions  int // that were compared until ctx was at its deadline
	Judged      int // pairs of a condition and a user whose profile was judged
	Differences []AuditDifference
}

// AuditDifference is a user of whom an answer says something else than their profile.
type AuditDifference struct {
	Where segment.Condition
	User  string // "" for Total
	What  AuditWhat
	// Want is the score or the number by the profiles or of the users named, and Got that of the
	// answer; 0 for Missing and Surplus.
	Want, Got float64
}

// AuditWhat is a kind of difference.
type AuditWhat string

// The kinds of differences.
const (
	Missing AuditWhat = "missing" // the profile meets the condition, and the user is not found
	Surplus AuditWhat = "surplus" // the user is found, and their profile does not meet it
	Twice   AuditWhat = "twice"   // the user is found twice
	Score   AuditWhat = "score"
	Total   AuditWhat = "total" // an answer counts other users than it names
)

// Audit compares answers with a scan of profiles. It makes conditions of what the profiles
// of the users hold, and asks for all users who meet each of them. A given user must be
// found if and only if their profile meets the condition, with the same score; so must
// some of the others who are found. Users are those of a sample; if they are all users of the app, the
// audit is a full scan. When ctx reaches its deadline, it returns the audit so far. Errors
// are those of Each.
func (r *Reader) Audit(ctx context.Context, app config.App, users []string, rnd *rand.Rand) (Audit, error) {
	app.Consistency = config.Strong // the queries read profiles so
	a := &segmentAudit{Reader: r, app: app.For(consent.Segments), sample: map[string]bool{}, rnd: rnd}
	for _, user := range users {
		a.sample[user] = true
	}
	terms, err := a.terms(ctx, users)
	if err != nil {
		return Audit{}, err
	}
	all := a.conditions(terms)
	a.found.Planned = len(all)
	for _, where := range all {
		differences, err := a.compare(ctx, where)
		if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			break
		}
		if err != nil {
			return Audit{}, err
		}
		a.found.Conditions++
		a.found.Differences = append(a.found.Differences, differences...)
	}
	return a.found, nil
}

type segmentAudit struct {
	*Reader
	app    config.App
	sample map[string]bool
	rnd    *rand.Rand
	found  Audit
}

// terms chooses filters of users in random order, one a user, each with a number below
// the user's score.
func (a *segmentAudit) terms(ctx context.Context, users []string) ([]segment.Filter, error) {
	order := slices.Clone(users)
	a.rnd.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	var terms []segment.Filter
	for group := range slices.Chunk(order, auditConditions) {
		err := a.profiles.ReadEach(ctx, a.app, group, 0, func(_ string, result profile.Result) error {
			if n := len(result.Affinities); result.Known && n > 0 && len(terms) < auditConditions {
				terms = append(terms, a.term(result.Affinities[a.rnd.IntN(n)], len(terms)))
			}
			return nil
		})
		var faulty profile.Faulty
		if err != nil && !errors.As(err, &faulty) {
			return nil, err
		}
		if len(terms) == auditConditions {
			break
		}
	}
	return terms, nil
}

// term makes the i-th filter of an affinity: under each half-life in turn, every second
// time above 0.
func (a *segmentAudit) term(of affinity.Affinity, i int) segment.Filter {
	f := segment.Filter{Filter: event.Filter{Facet: of.Facet, Value: of.Value}}
	h := 0
	if lives := a.app.Strategy.HalfLives; len(lives) > 0 {
		h = i % len(lives)
		f.HalfLife = lives[h]
	}
	if i%2 == 1 && h < len(of.Scores) {
		f.Above = of.Scores[h] * a.rnd.Float64()
	}
	return f
}

// conditions makes conditions of all forms of filters.
func (a *segmentAudit) conditions(terms []segment.Filter) []segment.Condition {
	var all []segment.Condition
	for i := range terms {
		one, other := segment.Condition{Filter: &terms[i]}, segment.Condition{Filter: &terms[(i+1)%len(terms)]}
		switch i % 4 {
		case 0, 1:
			all = append(all, one)
		case 2:
			all = append(all, segment.Condition{Or: []segment.Condition{one, other}})
		case 3:
			all = append(all, segment.Condition{And: []segment.Condition{one, {Not: &other}}})
		}
	}
	return all
}

// compare compares the answers of a condition until one has no difference, and returns
// the differences that all have.
func (a *segmentAudit) compare(ctx context.Context, where segment.Condition) ([]AuditDifference, error) {
	q, err := where.Compile(a.app.Strategy)
	if err != nil {
		return nil, err
	}
	var left []AuditDifference
	for attempt := 0; ; attempt++ {
		now, judged, err := a.differences(ctx, where, q, left)
		if err != nil {
			return nil, err
		}
		if attempt == 0 {
			a.found.Judged += judged
			left = now
		} else {
			left = slices.DeleteFunc(left, func(d AuditDifference) bool {
				return !slices.ContainsFunc(now, func(n AuditDifference) bool { return n.User == d.User && n.What == d.What })
			})
		}
		if len(left) == 0 || attempt == len(auditPauses) {
			return left, nil
		}
		if err := gax.Sleep(ctx, auditPauses[attempt]); err != nil {
			return nil, err
		}
	}
}

// differences asks for a condition once. It looks at the users of the sample, at those of
// earlier differences, and at some others who are found.
func (a *segmentAudit) differences(ctx context.Context, where segment.Condition, q *segment.Query,
	earlier []AuditDifference) ([]AuditDifference, int, error) {
	var all []AuditDifference
	add := func(user string, what AuditWhat, want, got float64) {
		all = append(all, AuditDifference{where, user, what, want, got})
	}
	look := map[string]bool{}
	for _, d := range earlier {
		look[d.User] = d.User != ""
	}
	listed, others, n := map[string]float64{}, []User{}, 0
	seed, seen := maphash.MakeSeed(), map[uint64]bool{} // a hash of each user, of 64 bits
	within, end := admission.Part(ctx)
	defer end()
	total, asOf, err := a.each(ctx, a.app, where, nil, func(u User) error {
		n++
		h := maphash.String(seed, u.Token)
		if seen[h] {
			add(u.Token, Twice, 1, 2)
		} else if err := admission.Take(within, 16); err != nil {
			return err
		}
		seen[h] = true
		if a.sample[u.Token] || look[u.Token] {
			listed[strings.Clone(u.Token)] = u.Score
		} else if at := a.rnd.IntN(n); len(others) < auditOthers {
			others = append(others, User{Token: strings.Clone(u.Token), Score: u.Score})
		} else if at < auditOthers {
			others[at] = User{Token: strings.Clone(u.Token), Score: u.Score}
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	for _, u := range others {
		listed[u.Token], look[u.Token] = u.Score, true
	}
	if total != n {
		add("", Total, float64(n), float64(total))
	}
	users := make([]string, 0, len(a.sample)+len(look))
	for user := range a.sample {
		users = append(users, user)
	}
	for user, is := range look {
		if is && !a.sample[user] {
			users = append(users, user)
		}
	}
	held, err := a.held(ctx, q, users, asOf)
	if err != nil {
		return nil, 0, err
	}
	for _, user := range users {
		want, holds := held[user]
		got, found := listed[user]
		switch {
		case holds && !found:
			add(user, Missing, 0, 0)
		case found && !holds:
			add(user, Surplus, 0, 0)
		case found && math.Abs(want-got) > near*max(want, got):
			add(user, Score, want, got)
		}
	}
	slices.SortFunc(all, func(a, b AuditDifference) int { return cmp.Compare(a.User, b.User) })
	return all, len(users), nil
}

// held returns the users whose profiles meet a condition as of an instant (ms), with
// their scores.
func (a *segmentAudit) held(ctx context.Context, q *segment.Query, users []string,
	at int64) (map[string]float64, error) {
	held := make(map[string]float64, len(users))
	var l segment.Lookup
	unread := make(map[string]int64, len(users)) // at no ticket
	for _, user := range users {
		unread[user] = 0
	}
	err := a.profiles.ReadChanged(ctx, a.app, unread, func(user string, stored []byte, _ int64) error {
		p, err := l.Find(q, stored, at)
		if err != nil {
			return err
		}
		if score, holds := q.Holds(p); p.Known && holds {
			held[user] = score
		}
		return nil
	})
	var faulty profile.Faulty
	if errors.As(err, &faulty) {
		err = nil // the engine has logged them, and no answer has them
	}
	return held, err
}
