package profiles

import (
	"net/http"
	"regexp"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/profile/view"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// linkRows is how many user rows a page of links looks at.
const linkRows = 20_000

// sources are the kinds of evidence, as the API names them.
var sources = map[string]links.Source{
	"event": links.FromEvent, "call": links.FromCall, "request": links.FromRequest,
}

// keyID is the form of the ID of a key.
var keyID = regexp.MustCompile(`^[0-9a-f]{12}$`)

// linksQuery is what a request for a page of links asks for.
type linksQuery struct {
	after, strength, by, state, key string
	from, to                        int64 // of the receipt of the evidence (ms); to is 0 for all
	limit                           int
}

func readLinksQuery(r *http.Request) (linksQuery, error) {
	values := r.URL.Query()
	q := linksQuery{
		after: values.Get("cursor"), strength: values.Get("strength"), by: values.Get("by"), state: values.Get("state"),
		key: values.Get("key"),
	}
	bad := func(message string) (linksQuery, error) {
		return q, httpapi.Errorf(http.StatusUnprocessableEntity, "%s", message)
	}
	if day := values.Get("day"); day != "" {
		from, err := time.Parse(time.DateOnly, day)
		if err != nil {
			return bad("day must be a day in UTC such as 2026-11-22")
		}
		q.from, q.to = from.UnixMilli(), from.AddDate(0, 0, 1).UnixMilli()
	}
	if _, exists := sources[q.by]; !exists && q.by != "" {
		return bad("by must be event, call or request")
	}
	if q.key != "" && !keyID.MatchString(q.key) {
		return bad("key must be the ID of a key: 12 hexadecimal digits")
	}
	switch q.strength {
	case "", "strong", "weak":
	default:
		return bad("strength must be strong or weak")
	}
	switch q.state {
	case "", "open", "closed", "limit", "unlinked", "deleted":
	default:
		return bad("state must be open, closed, limit, unlinked or deleted")
	}
	if q.after != "" && !event.ValidUserToken(q.after) {
		return bad("cursor must be the cursor of another answer of this route")
	}
	var err error
	q.limit, err = recentLimit(r, api.DefaultLinks, api.MaxLinks)
	return q, err
}

// wants reports whether the query asks for the link of an entry, in whatever state.
func (q *linksQuery) wants(e *links.Entry) bool {
	return (q.to == 0 || q.from <= e.At && e.At < q.to) && (q.by == "" || e.Source == sources[q.by]) &&
		(q.strength == "" || e.Weak == (q.strength == "weak")) && (q.key == "" || e.Key == q.key)
}

// links answers a page of the links of an app.
func (h handler) links(w http.ResponseWriter, r *http.Request, app config.App) error {
	q, err := readLinksQuery(r)
	if err != nil {
		return err
	}
	page, err := profile.IdentitiesOf(h.Profiles).ListLinks(r.Context(), app, q.after, linkRows, q.limit, q.wants)
	if err != nil {
		return err
	}
	answer := api.Links{Links: make([]api.Link, 0, len(page.Links)), Faulty: page.Faulty, Cursor: page.Next}
	for _, l := range page.Links {
		if v := view.Link(l); q.state == "" || v.State == q.state {
			answer.Links = append(answer.Links, v)
		}
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}
