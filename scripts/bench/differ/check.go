package differ

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// everything is the limit of a list that is not cut.
const everything = 1_000_000

// visible is how long an accepted event may take to count. It takes milliseconds unless the machine has
// much else to do.
const visible = time.Minute

// settled waits until the engine counts all events that it has accepted, and uses the newest
// configuration. After that every answer must be right at once.
func (w *world) settled() error {
	for end := time.Now().Add(visible); ; time.Sleep(100 * time.Millisecond) {
		for token, u := range w.users {
			// What the engine received without an answer comes soon after its start.
			time.Sleep(time.Until(time.UnixMilli(u.tried).Add(3 * time.Second)))
			if u.unsure() {
				if err := w.receipts(token, u); err != nil {
					return err
				}
			}
		}
		err := w.compareBatch(slices.Collect(maps.Keys(w.users)))
		var d *Difference
		if err == nil {
			for _, u := range w.users {
				u.late, u.tried = false, 0
				for _, x := range u.untimed {
					x.spans = x.spans[:0] // what has not come by now never came
				}
			}
			return nil
		}
		if !errors.As(err, &d) || time.Now().After(end) {
			return err
		}
	}
}

// exported reads the lines of a user, none of one who is not known.
func (w *world) exported(c *caller, token string) (*answer, error) {
	a, err := c.do(http.MethodGet, "/1/export/"+url.PathEscape(token), nil)
	switch {
	case err != nil:
		return nil, err
	case a.status == http.StatusNotFound:
		a.body = nil
	case a.status != http.StatusOK || !bytes.Contains(a.body, []byte(`{"exportEnd"`)):
		return nil, a.differs("export", fmt.Sprintf("%d %s", a.status, a.body), "200 and complete, or 404")
	}
	return a, nil
}

// receipts reads the times of a user's events that got the time of receipt.
func (w *world) receipts(token string, u *user) error {
	a, err := w.exported(w.caller, token)
	if err != nil {
		return err
	}
	times := map[string][]int64{}
	for line := range bytes.Lines(a.body) {
		var sent struct {
			ExportedEvent *struct {
				Time  int64
				Event struct {
					QueryID string
				}
			}
		}
		if err := json.Unmarshal(line, &sent); err != nil {
			return a.differs("export", string(line), err.Error())
		}
		if e := sent.ExportedEvent; e != nil && e.Event.QueryID != "" {
			times[e.Event.QueryID] = append(times[e.Event.QueryID], e.Time)
		}
	}
	for _, x := range u.untimed {
		if len(x.spans) == 0 {
			continue
		}
		x.times = times[x.mark]
		if len(x.times) > len(x.spans) {
			return a.differs("events without a time", fmt.Sprintf("%s counts %d times", x.mark, len(x.times)),
				fmt.Sprintf("sent %d times", len(x.spans)))
		}
		for _, t := range x.times {
			if !slices.ContainsFunc(x.spans, func(s span) bool { return s.from <= t && t <= s.to }) {
				return a.differs("time of receipt", fmt.Sprintf("%s: %d", x.mark, t), fmt.Sprintf("within a request: %v", x.spans))
			}
		}
	}
	return nil
}

// checkpoint compares all that can be asked.
func (w *world) checkpoint() error {
	if err := w.settled(); err != nil {
		return err
	}
	all := slices.Sorted(maps.Keys(w.users))
	for range 12 {
		token := pick(w.r, all)
		for _, compare := range []func(string) error{w.compareProfile, w.compareExplain, w.compareExplain,
			w.compareRank, w.compareScaled, w.compareExport} {
			if err := compare(token); err != nil {
				return err
			}
		}
	}
	if err := w.compareUsers(); err != nil {
		return err
	}
	for range 16 {
		c := w.condition(2)
		if w.r.IntN(2) == 0 { // the answer computes a profile, after the instant that it is of
			if err := w.importOne(); err != nil {
				return err
			}
			c = w.leafOf(filter{"all", "everybody"})
		}
		if err := w.compareSegment(c); err != nil {
			return err
		}
		if err := w.compareHistogram(); err != nil {
			return err
		}
	}
	return nil
}

// gotProfile is a profile as the engine answers it.
type gotProfile struct {
	UserToken         string
	LastEventAt, AsOf time.Time
	Total             int
	Truncated         bool
	Affinities        []struct {
		Facet, Operator, Value string
		Score                  float64
		Scores                 map[string]float64
	}
}

// same compares scores of the strategy: sums without decay are exact.
func (w *world) same(a, b float64) bool {
	if len(w.HalfLives) == 0 {
		return a == b
	}
	return near(a, b)
}

func (w *world) compareProfile(token string) error {
	query, k := url.Values{"limit": {strconv.Itoa(everything)}}, 0
	if n := len(w.HalfLives); n > 0 && w.r.IntN(2) == 0 {
		k = w.r.IntN(n)
		query.Set("halfLife", w.HalfLives[k].text)
	}
	a, err := w.do(http.MethodGet, "/1/profiles/"+url.PathEscape(token)+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	w.tally.compared("profiles", 1)
	if a.status == http.StatusNotFound {
		return w.unknown(a, token)
	}
	if a.status != http.StatusOK {
		return a.differs("profile", fmt.Sprintf("%d %s", a.status, a.body), "200 or 404")
	}
	var got gotProfile
	if err := a.decode(&got); err != nil {
		return err
	}
	return w.sameProfile(a, got, token, k)
}

// unknown checks that the model does not know a user either.
func (w *world) unknown(a *answer, token string) error {
	events := w.user(token).all()
	for _, at := range []int64{a.at(), a.done()} {
		if p := w.profile(events, at); !p.known() {
			return nil
		}
	}
	return a.differs("profile", token+" is not known", fmt.Sprintf("known by %d events", len(events)))
}

func (w *world) compareBatch(tokens []string) error {
	a, err := w.send(http.MethodPost, "/1/profiles/batch",
		map[string]any{"userTokens": tokens, "limit": everything}, http.StatusOK)
	if err != nil {
		return err
	}
	var got struct {
		Profiles         []gotProfile
		NotFound, Faulty []string
	}
	if err := a.decode(&got); err != nil {
		return err
	}
	w.tally.compared("profiles", len(tokens))
	if len(got.Profiles)+len(got.NotFound) != len(tokens) {
		return a.differs("batch", fmt.Sprintf("%d profiles, %d not found, faulty: %v", len(got.Profiles),
			len(got.NotFound), got.Faulty), fmt.Sprint(len(tokens), " users"))
	}
	for _, token := range got.NotFound {
		if err := w.unknown(a, token); err != nil {
			return err
		}
	}
	for _, p := range got.Profiles {
		if err := w.sameProfile(a, p, p.UserToken, 0); err != nil {
			return err
		}
	}
	return nil
}

// asOf checks the instant of an answer about a user: the clock during the request or, if that is
// later, the user's newest event.
func (w *world) asOf(a *answer, got time.Time, events []*event) error {
	from, to := instant(events, a.at()), instant(events, a.done())
	if at := got.UnixMilli(); at < from || at > to {
		return a.differs("asOf", fmt.Sprint(at), fmt.Sprintf("%d to %d", from, to))
	}
	return nil
}

// sameProfile compares a profile, which is sorted by the half-life k.
func (w *world) sameProfile(a *answer, got gotProfile, token string, k int) error {
	events := w.user(token).all()
	if err := w.asOf(a, got.AsOf, events); err != nil {
		return err
	}
	p := w.profile(events, got.AsOf.UnixMilli())
	differs := func(what string, engine, model any) error {
		return a.differs("profile of "+token+" as of "+strconv.FormatInt(p.at, 10)+": "+what, fmt.Sprint(engine),
			fmt.Sprint(model))
	}
	switch {
	case !p.known():
		return differs("user", "known", "not known")
	case got.UserToken != token:
		return differs("token", got.UserToken, token)
	case got.LastEventAt.UnixMilli() != p.last:
		return differs("last event", got.LastEventAt.UnixMilli(), p.last)
	case got.Total != len(p.scores):
		engine, model := map[string]int{}, map[string]int{}
		for _, affinity := range got.Affinities {
			engine[filter{affinity.Facet, affinity.Value}.String()]++
		}
		for f := range p.scores {
			model[f.String()]++
		}
		return differs("values", fmt.Sprintf("%d, only here %q", got.Total, missing(engine, model)),
			fmt.Sprintf("%d, only here %q", len(p.scores), missing(model, engine)))
	}
	seen, before := map[filter]bool{}, math.Inf(1)
	for n, affinity := range got.Affinities {
		f := filter{affinity.Facet, affinity.Value}
		want := p.scores[f]
		switch {
		case want == nil || seen[f]:
			return differs(f.String(), affinity.Score, "not in the profile, or once")
		case affinity.Operator != ":" || !w.same(affinity.Score, want[k]):
			return differs(f.String(), affinity.Score, want[k])
		case p.listed(f) == no:
			return differs(f.String(), "is listed", "beyond the bound of a facet")
		case affinity.Score > before:
			return differs("order", affinity, "the highest score first")
		case affinity.Score == before && n > 0:
			if last := got.Affinities[n-1]; k == 0 && (last.Facet > f.Facet || last.Facet == f.Facet && last.Value > f.Value) {
				return differs("order of equal scores", last.Value+" before "+f.Value, "by facet and value")
			}
		}
		if len(affinity.Scores) != len(w.HalfLives) {
			return differs(f.String(), affinity.Scores, want)
		}
		for i, h := range w.HalfLives {
			if !w.same(affinity.Scores[h.text], want[i]) {
				return differs(f.String()+" under "+h.text, affinity.Scores[h.text], want[i])
			}
		}
		seen[f], before = true, affinity.Score
	}
	left := false
	for f, scores := range p.scores {
		highest := slices.Max(scores)
		if seen[f] || highest < 1e-290 {
			continue
		}
		left = true
		if p.listed(f) == yes {
			return differs(f.String(), "not listed", scores)
		}
	}
	if got.Truncated != left && !(p.crowded() && got.Truncated) {
		return differs("truncated", got.Truncated, left)
	}
	return nil
}

// compareScaled compares the form of Algolia's API: 1 to 20, the facet's weight divided out.
func (w *world) compareScaled(token string) error {
	a, err := w.do(http.MethodGet, "/1/profiles/personalization/"+url.PathEscape(token), nil)
	if err != nil {
		return err
	}
	events := w.user(token).all()
	p := w.profile(events, a.at())
	if later := w.profile(events, a.done()); len(p.scores) != len(later.scores) || p.known() != later.known() ||
		p.crowded() {
		return nil // the answer does not say of when it is
	}
	if a.status == http.StatusNotFound {
		return w.unknown(a, token)
	}
	var got struct{ Scores map[string]map[string]float64 }
	if err := a.decode(&got); err != nil {
		return err
	}
	w.tally.compared("scaled profiles", 1)
	highest := 0.0
	for f, scores := range p.scores {
		highest = max(highest, scores[0]/float64(w.facetScore(f.Facet)))
	}
	if highest < 1e-280 {
		return nil
	}
	for f, scores := range p.scores {
		want := 20 * (scores[0] / float64(w.facetScore(f.Facet)) / highest)
		// A half may be rounded either way.
		if n := got.Scores[f.Facet][f.Value]; n < max(1, math.Round(want-1e-7)) && scores[0] > 1e-290 ||
			n > max(1, math.Round(want+1e-7)) {
			return a.differs("scaled score of "+f.String(), fmt.Sprint(n), fmt.Sprint(want))
		}
	}
	return nil
}

// filterOf picks a filter for a question about a user, mostly one that they have.
func (w *world) filterOf(token string) filter {
	events := w.user(token).all()
	if len(events) == 0 || w.r.IntN(10) == 0 {
		return w.filter()
	}
	slices.SortFunc(events, func(a, b *event) int { return strings.Compare(a.identity(), b.identity()) })
	of := slices.SortedFunc(maps.Keys(pick(w.r, events).counts),
		func(a, b filter) int { return strings.Compare(a.String(), b.String()) })
	if len(of) == 0 {
		return w.filter()
	}
	return pick(w.r, of) // as sent: with an alias it has no score
}

func (w *world) compareExplain(token string) error {
	f := w.filterOf(token)
	if merged := w.merged(); len(merged) > 0 && w.r.IntN(3) == 0 {
		f = merged[1]
	} else if w.r.IntN(4) > 0 {
		f = w.target(f)
	}
	query := url.Values{"facet": {f.Facet}, "value": {f.Value}, "limit": {"10000"}}
	a, err := w.want(http.MethodGet, "/1/explain/"+url.PathEscape(token)+"?"+query.Encode(), nil, http.StatusOK)
	if err != nil {
		return err
	}
	var got struct {
		AsOf   time.Time
		Known  bool
		Events struct {
			Accepted, Deleted, OutsideWindow, Ahead, NotInStrategy, WithoutFilters, Ignored, Counted,
			WithUnknownObjects int
		}
		Score         float64
		Scores        map[string]float64
		Contributions []struct {
			Time                                  time.Time
			EventScore, FacetScore, Weight, Count int
			Contribution                          float64
			Contributions                         map[string]float64
		}
	}
	if err := a.decode(&got); err != nil {
		return err
	}
	events := w.user(token).all()
	if err := w.asOf(a, got.AsOf, events); err != nil {
		return err
	}
	at := got.AsOf.UnixMilli()
	why, n := w.reasons(events, at), got.Events
	counts := [...]int{n.OutsideWindow, n.Ahead, n.NotInStrategy, n.WithoutFilters, n.Ignored, n.Counted,
		n.WithUnknownObjects}
	want := [...]int{why.outside, 0, why.notInStrategy, why.withoutFilters, why.ignored, why.counted, why.unknown}
	if counts != want ||
		n.Accepted != n.Deleted+n.OutsideWindow+n.Ahead+n.NotInStrategy+n.WithoutFilters+n.Ignored+n.Counted {
		return a.differs("explained events of "+token, fmt.Sprintf("%+v", n), fmt.Sprintf("%+v", why))
	}
	p := w.profile(events, at)
	if got.Known != p.known() || !w.same(got.Score, p.score(f, 0)) {
		return a.differs("explained score of "+f.String(), fmt.Sprint(got.Known, got.Score),
			fmt.Sprint(p.known(), p.score(f, 0)))
	}
	for k, h := range w.HalfLives {
		if !w.same(got.Scores[h.text], p.score(f, k)) {
			return a.differs("explained score of "+f.String()+" under "+h.text, fmt.Sprint(got.Scores[h.text]),
				fmt.Sprint(p.score(f, k)))
		}
	}
	w.tally.compared("explained scores", 1)
	sum := 0.0
	for _, c := range got.Contributions {
		sum += c.Contribution // in their order, to the last bit
	}
	all := w.contributions(events, f, at)
	if len(all) != len(got.Contributions) || sum != got.Score {
		return a.differs("contributions to "+f.String(),
			fmt.Sprintf("%d, sum %v, score %v", len(got.Contributions), sum, got.Score), fmt.Sprint(len(all)))
	}
	slices.SortStableFunc(got.Contributions, func(a, b struct {
		Time                                  time.Time
		EventScore, FacetScore, Weight, Count int
		Contribution                          float64
		Contributions                         map[string]float64
	},
	) int {
		return orderOf(a.Time.UnixMilli(), b.Time.UnixMilli(), a.EventScore*a.Count-b.EventScore*b.Count)
	})
	slices.SortStableFunc(all, func(a, b contribution) int {
		return orderOf(a.time, b.time,
			a.points*a.count-b.points*b.count)
	})
	for i, c := range got.Contributions {
		m := all[i]
		same := c.Time.UnixMilli() == m.time && c.EventScore*c.Count == m.points*m.count && c.FacetScore == m.facet &&
			c.Weight == c.EventScore*c.FacetScore && w.same(c.Contribution, m.adds[0])
		for k, h := range w.HalfLives {
			same = same && w.same(c.Contributions[h.text], m.adds[k])
		}
		if !same {
			return a.differs(fmt.Sprintf("contribution %d to %s", i, f), fmt.Sprintf("%+v", c), fmt.Sprintf("%+v", m))
		}
	}
	w.tally.compared("contributions", len(all))
	return nil
}

func orderOf(a, b int64, then int) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return then
}

// compareExport compares the events of a user.
func (w *world) compareExport(token string) error {
	a, err := w.exported(w.caller, token)
	if err != nil {
		return err
	}
	describe := func(time int64, counts map[filter]int) string {
		texts := make([]string, 0, len(counts))
		for f, n := range counts {
			texts = append(texts, fmt.Sprintf("%q %d", f, n))
		}
		slices.Sort(texts)
		return fmt.Sprint(time, texts)
	}
	got, want := map[string]int{}, map[string]int{}
	for line := range bytes.Lines(a.body) {
		var sent struct {
			ExportedEvent *struct {
				Time    int64
				Filters [][3]any
			}
		}
		if err := json.Unmarshal(line, &sent); err != nil {
			return a.differs("export", string(line), err.Error())
		}
		if e := sent.ExportedEvent; e != nil {
			counts := map[filter]int{}
			for _, f := range e.Filters {
				counts[filter{fmt.Sprint(f[0]), fmt.Sprint(f[1])}] += int(f[2].(float64))
			}
			got[describe(e.Time, counts)]++
		}
	}
	events := w.user(token).all()
	for _, at := range []int64{a.at(), a.done()} { // an event may leave the window in between
		clear(want)
		for _, e := range w.window(events, instant(events, at)) {
			want[describe(e.Time, e.counts)]++
		}
		if maps.Equal(got, want) {
			w.tally.compared("exported users", 1)
			return nil
		}
	}
	return a.differs("exported events of "+token, fmt.Sprint(missing(got, want)), fmt.Sprint(missing(want, got)))
}

// missing returns what is in one map and not as often in another.
func missing(in, of map[string]int) []string {
	var all []string
	for key, n := range in {
		if of[key] < n {
			all = append(all, key)
		}
	}
	return all
}

// compareUsers compares the list of known users.
func (w *world) compareUsers() error {
	a, err := w.want(http.MethodGet, "/1/usertokens?limit=1000", nil, http.StatusOK)
	if err != nil {
		return err
	}
	var got struct {
		Users []struct {
			UserToken   string
			LastEventAt time.Time
			Total       int
		}
		Faulty []string
		Cursor string
	}
	if err := a.decode(&got); err != nil {
		return err
	}
	listed := map[string]bool{}
	for _, u := range got.Users {
		listed[u.UserToken] = true
		events := w.user(u.UserToken).all()
		same := false
		for _, at := range []int64{a.at(), a.done()} {
			p := w.profile(events, at)
			same = same || p.known() && p.last == u.LastEventAt.UnixMilli() && len(p.scores) == u.Total
		}
		if !same {
			return a.differs("listed user "+u.UserToken, fmt.Sprintf("%+v", u), fmt.Sprintf("%+v", w.profile(events, a.done())))
		}
	}
	for token, u := range w.users {
		events := u.all()
		from, to := w.profile(events, a.at()), w.profile(events, a.done())
		if from.known() && to.known() && !listed[token] && got.Cursor == "" {
			return a.differs("listed users", token+" is missing", "known")
		}
	}
	w.tally.compared("lists of users", 1)
	return nil
}

// compareRank compares an order and what it is made of.
func (w *world) compareRank(token string) error {
	events := w.user(token).all()
	name := pick(w.r, []string{"shop", "shop", "priced", "later"})
	body := map[string]any{"userToken": token, "index": name, "explain": true}
	var impact *int
	if w.r.IntN(3) == 0 {
		n := pick(w.r, []int{0, 10, 100})
		impact = &n
		body["impact"] = n
	}
	var candidates []candidate
	var items []map[string]any
	relevancies := w.r.IntN(2) == 0
	for _, id := range distinct(append(w.objectIDs(name, 2+w.r.IntN(14)), "not there")) {
		c := candidate{id: id, filters: w.indexes[name].filters(w.indexes[name].objects[id])}
		item := map[string]any{"id": id}
		if relevancies {
			r := float64(w.r.IntN(5))
			c.relevancy = &r
			item["fields"] = []any{map[string]any{"name": "relevancy", "value": r}}
		}
		candidates, items = append(candidates, c), append(items, item)
	}
	body["items"] = items
	a, err := w.send(http.MethodPost, "/1/rank", body, http.StatusOK)
	if err != nil {
		return err
	}
	var got struct {
		Fallback *string
		Items    []struct {
			ObjectID string
			Score    float64
			Features []struct {
				Name  string
				Value float64
			}
		}
	}
	if err := a.decode(&got); err != nil {
		return err
	}
	if len(got.Items) != len(candidates) {
		return a.differs("rank", fmt.Sprint(len(got.Items), " items"), fmt.Sprint(len(candidates)))
	}
	// The scores are parts of the highest, so decay changes nothing. But an event may leave the
	// window during the request.
	var ranks []map[string]ranked
	for _, at := range []int64{a.at(), a.done()} {
		at = instant(events, at)
		p := w.profile(events, at)
		newest, sure := w.sessionEvents(events, at)
		if p.crowded() || !sure || !p.comparable() {
			return nil
		}
		scores := map[filter]float64{}
		for f := range p.scores {
			scores[f] = p.score(f, 0)
		}
		ranks = append(ranks, w.rank(candidates, impact, scores, w.sessionScores(newest, at)))
	}
	for i, item := range got.Items {
		if i > 0 {
			if last := got.Items[i-1]; item.Score > last.Score || item.Score == last.Score && last.ObjectID > item.ObjectID {
				return a.differs("order of a ranking", fmt.Sprintf("%+v before %+v", last, item), "by score, then by objectID")
			}
		}
		features := map[string]float64{}
		sum := 0.0
		for _, f := range item.Features {
			features[f.Name] = f.Value
			sum += f.Value
		}
		same := false
		for _, all := range ranks {
			m := all[item.ObjectID]
			same = same || m.id != "" && near(item.Score, m.score()) && near(sum, m.score()) &&
				near(features["relevancy"], m.relevancy) &&
				near(features["affinity"], m.affinity) && near(features["session"], m.session)
		}
		if !same {
			return a.differs("ranking of "+item.ObjectID+" for "+token, fmt.Sprintf("%+v", item),
				fmt.Sprintf("%+v", ranks[0][item.ObjectID]))
		}
	}
	w.tally.compared("rankings", 1)
	return nil
}

// comparable reports whether the first scores of a profile have all of their digits.
func (p *profile) comparable() bool {
	for _, scores := range p.scores {
		if scores[0] < 1e-280 {
			return false
		}
	}
	return true
}

// condition makes a condition that a positive filter bounds.
func (w *world) condition(depth int) *condition {
	if depth == 0 || w.r.IntN(3) > 0 {
		return w.leaf()
	}
	switch w.r.IntN(3) {
	case 0:
		return &condition{And: []*condition{w.condition(depth - 1), w.condition(depth - 1)}}
	case 1:
		return &condition{Or: []*condition{w.condition(depth - 1), w.leaf()}}
	}
	return &condition{And: []*condition{w.leaf(), {Not: w.leaf()}}}
}

// leaf makes a filter with a threshold: none, one where buckets begin, or the score that a user has.
func (w *world) leaf() *condition {
	token := pick(w.r, slices.Sorted(maps.Keys(w.users)))
	f := w.filterOf(token)
	c := w.leafOf(f)
	switch w.r.IntN(4) {
	case 0, 1:
	case 2:
		c.Above = pick(w.r, []float64{1, 2, 5}) * math.Pow10(w.r.IntN(5))
	case 3:
		p := w.profile(w.user(token).all(), time.Now().UnixMilli())
		c.Above = p.score(w.target(f), c.k)
	}
	return c
}

// leafOf makes a filter without a threshold.
func (w *world) leafOf(f filter) *condition {
	c := &condition{filter: f, Filter: w.encode(f)}
	if n := len(w.HalfLives); n > 0 && w.r.IntN(3) > 0 {
		c.k = w.r.IntN(n)
		c.Half = &w.HalfLives[c.k]
	}
	return c
}

// members are the users who meet a condition at an instant, and those of whom no one knows.
func (w *world) members(c *condition, at int64) (sure, unsure map[string]*profile) {
	sure, unsure = map[string]*profile{}, map[string]*profile{}
	for token, u := range w.users {
		p := w.profile(u.all(), at)
		if !p.known() {
			continue
		}
		switch w.holds(c, &p) {
		case yes:
			sure[token] = &p
		case either:
			unsure[token] = &p
		}
	}
	return sure, unsure
}

func (w *world) compareSegment(c *condition) error {
	first := c.first(false)
	limit := pick(w.r, []int{0, 1, 3, 7, 1000})
	seen, cursor := map[string]bool{}, ""
	for {
		a, err := w.send(http.MethodPost, "/1/segments/query",
			map[string]any{"where": c, "limit": limit, "cursor": cursor}, http.StatusOK)
		if err != nil {
			return err
		}
		var got struct {
			Total int
			AsOf  time.Time
			Users []struct {
				UserToken string
				Score     float64
			}
			Cursor string
		}
		if err := a.decode(&got); err != nil {
			return err
		}
		at := got.AsOf.UnixMilli()
		if at < a.at() || at > a.done() {
			return a.differs("asOf of a segment", fmt.Sprint(at), fmt.Sprintf("%d to %d", a.at(), a.done()))
		}
		sure, unsure := w.members(c, at)
		if got.Total < len(sure) || got.Total > len(sure)+len(unsure) {
			return a.differs("size of a segment", fmt.Sprint(got.Total),
				fmt.Sprintf("%d, and %d who are on a threshold", len(sure), len(unsure)))
		}
		for i, u := range got.Users {
			p := sure[u.UserToken]
			if p == nil {
				p = unsure[u.UserToken]
			}
			if p == nil || seen[u.UserToken] {
				return a.differs("segment", u.UserToken+" is listed", "not a member, or once")
			}
			seen[u.UserToken] = true
			want := p.score(w.target(first.filter), first.k)
			if want <= leastSegment {
				want = 0
			}
			// The order of segments keeps 36 bits behind the first of a score, which is 1.5e-11 of it.
			if !near(u.Score, want) {
				return a.differs("score of "+u.UserToken+" in a segment", fmt.Sprint(u.Score), fmt.Sprintf("%v as of %d", want, at))
			}
			if i > 0 {
				last := got.Users[i-1]
				if last.Score < u.Score || last.Score == u.Score && last.UserToken > u.UserToken {
					return a.differs("order of a segment", fmt.Sprintf("%+v before %+v", last, u), "by score, then by token")
				}
			}
		}
		w.tally.compared("users of segments", len(got.Users))
		if cursor = got.Cursor; cursor == "" {
			for token, p := range sure {
				// The scores of users who are ahead of the clock stand still while others decay, and events
				// leave the window: these may be on a page before or behind.
				if limit > 0 && !seen[token] && (limit == 1000 || p.at == at && w.steady(token, at)) {
					return a.differs("segment", token+" is missing", fmt.Sprintf("a member as of %d", at))
				}
			}
			w.tally.compared("segment queries", 1)
			return nil
		}
	}
}

// steady reports whether no event leaves the window of a user within a minute around an instant, and
// the user was not ahead of the clock a minute before it.
func (w *world) steady(token string, at int64) bool {
	return !slices.ContainsFunc(w.user(token).all(), func(e *event) bool {
		leaves := w.retention > 0 && e.Time > at-w.retention-minute && e.Time < at-w.retention+minute
		return leaves || e.Time > at-minute
	})
}

func (w *world) compareHistogram() error {
	f, k := filter{"edge", fmt.Sprint(w.r.IntN(6))}, 0
	if w.r.IntN(3) == 0 {
		f = w.filterOf(pick(w.r, slices.Sorted(maps.Keys(w.users))))
	}
	query := url.Values{"facet": {f.Facet}, "value": {f.Value}}
	if n := len(w.HalfLives); n > 0 {
		k = w.r.IntN(n)
		query.Set("halfLife", w.HalfLives[k].text)
	}
	a, err := w.want(http.MethodGet, "/1/segments/histogram?"+query.Encode(), nil, http.StatusOK)
	if err != nil {
		return err
	}
	var got struct {
		Users     int
		Mean      float64
		Quantiles map[string]float64
		Buckets   []struct {
			From, To float64
			Users    int
		}
		AsOf time.Time
	}
	if err := a.decode(&got); err != nil {
		return err
	}
	at := got.AsOf.UnixMilli()
	if at < a.at() || at > a.done() {
		return a.differs("asOf of a histogram", fmt.Sprint(at), fmt.Sprintf("%d to %d", a.at(), a.done()))
	}
	var scores []float64
	unsure := 0
	for _, u := range w.users {
		p := w.profile(u.all(), at)
		switch w.holds(&condition{filter: f, k: k}, &p) {
		case yes:
			scores = append(scores, p.score(w.target(f), k))
		case either:
			unsure++
		}
	}
	if unsure > 0 {
		return nil // bounds of profiles hide who has the value
	}
	slices.Sort(scores)
	if got.Users != len(scores) {
		return a.differs("users of a histogram of "+f.String(), fmt.Sprint(got.Users), fmt.Sprint(len(scores)))
	}
	w.tally.compared("histograms", 1)
	if len(scores) == 0 {
		return nil
	}
	sum := 0.0
	for _, s := range scores {
		sum += s
	}
	if mean := sum / float64(len(scores)); !near(got.Mean, mean) {
		return a.differs("mean of "+f.String(), fmt.Sprint(got.Mean), fmt.Sprint(mean))
	}
	for name, percent := range map[string]int{"p10": 10, "p50": 50, "p90": 90, "p99": 99} {
		if want := scores[(len(scores)*percent+99)/100-1]; !near(got.Quantiles[name], want) {
			return a.differs(name+" of "+f.String(), fmt.Sprint(got.Quantiles[name]), fmt.Sprint(want))
		}
	}
	const mostBuckets = 24
	below := 0
	for i, b := range got.Buckets {
		if i > 0 && b.From != got.Buckets[i-1].To || b.From >= b.To || len(got.Buckets) > mostBuckets {
			return a.differs("buckets of "+f.String(), fmt.Sprintf("%+v", got.Buckets),
				fmt.Sprintf("ascend without gaps, at most %d", mostBuckets))
		}
		below += b.Users
		// A score on the edge may be counted on either side of it, unless scores are whole.
		slack := tolerance * b.To
		if len(w.HalfLives) == 0 {
			slack = 0
		}
		from, _ := slices.BinarySearch(scores, b.To-slack)
		to, _ := slices.BinarySearch(scores, b.To+slack)
		if below < from || below > to {
			return a.differs("buckets of "+f.String(), fmt.Sprintf("%d below %v: %+v", below, b.To, got.Buckets),
				fmt.Sprintf("%d to %d of %v", from, to, scores))
		}
		if digits, _, _ := strings.Cut(strconv.FormatFloat(b.To, 'e', 12, 64),
			"e"); !slices.Contains([]string{"1.000000000000", "2.000000000000", "5.000000000000"}, digits) {
			return a.differs("edge of a bucket", fmt.Sprint(b.To), "1, 2 or 5 times a power of ten")
		}
	}
	if below != len(scores) {
		return a.differs("buckets of "+f.String(), fmt.Sprintf("%d users in %+v", below, got.Buckets),
			fmt.Sprintf("each of %d users once", len(scores)))
	}
	return nil
}
