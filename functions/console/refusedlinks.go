package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

func init() {
	pages = append(pages, page{pattern: "GET " + refusedLinksPath, section: "users", template: "refusedlinks",
		load: loadRefusedLinks})
}

const refusedLinksPath = "/console/refusedlinks"

// refusedLinksPage is what the page about refused links shows.
type refusedLinksPage struct {
	Now     time.Time
	Days    int // that are counted
	Reasons []refusedReason
	// Reason is the one of which the page lists links; nil: all.
	Reason *refusedReason
	List   []refusedLink
	Later  bool   // the list does not begin with the newest
	Next   string // the page with those before
}

// refusedReason is a reason for which links were refused.
type refusedReason struct {
	Reason, Words string
	Path          string // of the page that lists its links
	Count         int64
	Counts        []int64      // a day, today last
	Newest        *refusedLink // nil: it is not known any more
}

// refusedLink is a link as the page shows it.
type refusedLink struct {
	api.RefusedLink
	Words string
}

func loadRefusedLinks(v *visit) (any, error) {
	if !v.may(auth.Admin) {
		return nil, httpapi.Errorf(http.StatusForbidden, "To see refused links needs a key with the permission admin")
	}
	reason, cursor := v.URL.Query().Get("reason"), v.URL.Query().Get("cursor")
	v.title, v.command = "Refused links", "affinity identity refused"
	if reason != "" {
		v.command += " --reason " + shellArg(reason)
	}
	answer, err := v.engine.Profiles().RefusedLinks(v.Context(), reason, cursor)
	if err != nil {
		return nil, fmt.Errorf("list refused links: %w", err)
	}
	p := &refusedLinksPage{Now: v.now(), Days: api.MaxRefusedLinksDays, Later: cursor != ""}
	p.count(answer.Days)
	for _, l := range answer.Refused {
		p.List = append(p.List, refusedLink{l, wordsOf(l.Reason)})
	}
	if answer.Cursor != "" {
		p.Next = refusedPath(reason, answer.Cursor)
	}
	if reason != "" {
		p.Reason = &refusedReason{Reason: reason, Words: wordsOf(reason)}
	}
	if p.Reason != nil || p.Later {
		return p, nil
	}
	return p, p.illustrate(v)
}

// count takes the reasons from the counts of days, the most frequent first.
func (p *refusedLinksPage) count(days []api.RefusedLinksDay) {
	today, found := p.Now.UTC().Truncate(24*time.Hour), map[string]*refusedReason{}
	for _, d := range days {
		at, err := time.Parse(time.DateOnly, d.Day)
		back := int(today.Sub(at) / (24 * time.Hour))
		if err != nil || back < 0 || back >= p.Days {
			back = p.Days - 1
		}
		for name, n := range d.Counts {
			r := found[name]
			if r == nil {
				r = &refusedReason{Reason: name, Words: wordsOf(name), Path: refusedPath(name, ""), Counts: make([]int64, p.Days)}
				found[name] = r
			}
			r.Count += n
			r.Counts[p.Days-1-back] += n
		}
	}
	for _, r := range slices.SortedFunc(maps.Values(found), func(a, b *refusedReason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	}) {
		p.Reasons = append(p.Reasons, *r)
	}
}

// illustrate gives each reason its newest link. It asks for that of a reason which the list does not have.
func (p *refusedLinksPage) illustrate(v *visit) error {
	a, asked := &asks{}, make([]part[api.RefusedLinks], len(p.Reasons))
	for i := range p.Reasons {
		r := &p.Reasons[i]
		at := slices.IndexFunc(p.List, func(l refusedLink) bool { return l.RefusedLink.Reason == r.Reason })
		if at >= 0 {
			r.Newest = &p.List[at]
			continue
		}
		ask(a, &asked[i], func() (api.RefusedLinks, error) {
			return v.engine.Profiles().RefusedLinks(v.Context(), r.Reason, "")
		})
	}
	a.wait()
	for i := range p.Reasons {
		_, err := asked[i].missing()
		if _, unknown := asRefusal(err); err != nil && !unknown { // of another release: it is shown without
			return fmt.Errorf("list refused links of a reason: %w", err)
		}
		if list := asked[i].Got.Refused; len(list) > 0 {
			p.Reasons[i].Newest = &refusedLink{list[0], p.Reasons[i].Words}
		}
	}
	return nil
}

// Most is the number of links of the reason on the day with most.
func (r refusedReason) Most() int64 { return slices.Max(r.Counts) }

// Today is the number of links of the reason today.
func (r refusedReason) Today() int64 { return r.Counts[len(r.Counts)-1] }

// wordsOf says what a reason means. An engine may answer with one that this console does not know.
func wordsOf(reason string) string {
	return cmp.Or(capitalized(links.Reason(reason).Words()), reason)
}

// refusedPath is the page that lists links.
func refusedPath(reason, cursor string) string {
	query := url.Values{}
	if reason != "" {
		query.Set("reason", reason)
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	if len(query) == 0 {
		return refusedLinksPath
	}
	return refusedLinksPath + "?" + query.Encode()
}
