package rank

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/feed"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/serve/page"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// feedOptions are the query options of a page of a feed, but for those of the format wordpress.
var feedOptions = []string{"userToken", "limit", "cursor", "format", "exclude"}

// feedRequest is a request for a page.
type feedRequest struct {
	page.Request
	posts posts // of the format wordpress
}

// feedPage answers a page of a feed in one of its orders.
func (h handler) feedPage(order feed.Order) httpapi.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		q := feedRequest{Request: page.Request{Order: order, Limit: api.DefaultFeedItems}}
		if err := h.serveFeed(w, r, &q); err != nil {
			if q.Format == feed.WordPress {
				err = asWordPress(err)
			}
			return err
		}
		return nil
	}
}

func (h handler) serveFeed(w http.ResponseWriter, r *http.Request, q *feedRequest) error {
	if q.Order == feed.Suggested {
		personal(w.Header())
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return invalid("The query of the URL is malformed: percent-encode its values")
	}
	if err := setFeedOption(q, "format", values["format"]); err != nil { // it is the form of errors
		return err
	}
	app, access, err := h.feedReader(h.Auth.Complete(r, q.Order == feed.Suggested), q, values)
	if err != nil {
		return err
	}
	if err := q.decode(values); err != nil {
		return err
	}
	if access != auth.FullAccess {
		q.Feed.Seen = ranking.Keep // it would say which records the user's events name
	}
	h.Usage.Reads(app.ID, 1)
	p, err := h.Pages.Read(r.Context(), app, q.Request)
	if err != nil {
		return fmt.Errorf("read feed: %w", err)
	}
	if access != auth.FullAccess {
		// They would say whether the user is known, and which tokens are one person's.
		p.Fallback, p.Person, p.Assigned = "", false, experiment.Assignment{}
	}
	return h.writeFeed(w, r, *q, p)
}

// personal says to caches between the engine and a client that the answer is one person's.
func personal(head http.Header) { head["Cache-Control"], head["Vary"] = notShared, byPerson }

// The headers of personal are one for all answers. An append copies them.
var (
	notShared = []string{"private, no-store"}
	byPerson  = []string{"Origin, Cookie, X-Algolia-Api-Key, X-Algolia-Application-Id, X-Algolia-Usertoken"}
)

// feedReader returns the app of a request and what its key may see of the user, and sets the user,
// the feed and the format. Anybody may read the order latest of a public feed in its own format at
// the app's own host.
func (h handler) feedReader(r *http.Request, q *feedRequest, values url.Values) (config.App, auth.Access, error) {
	app, grant, err := h.feedGrant(r, q.Order)
	public := q.Order == feed.Latest && errors.Is(err, auth.ErrMissing)
	if public {
		app, err = h.Auth.HostTenant(r)
	}
	if err == nil {
		err = q.decodeUser(values, r.Header.Values(userHeader))
	}
	if err != nil {
		return config.App{}, 0, err
	}
	if q.Order == feed.Suggested && q.User == "" {
		q.User = grant.OwnUser()
	}
	access, err := feedAccess(app, grant, q.Request)
	if err != nil {
		return config.App{}, 0, err
	}
	q.Feed, err = h.feedOf(r.Context(), app.ID, r.PathValue("name"))
	if status, _ := httpapi.Status(err); public &&
		(err == nil && !q.anybody() || err != nil && status == http.StatusNotFound) {
		err = auth.ErrMissing // not even whether the feed exists
	}
	if err == nil {
		err = grant.Index(q.Feed.Index)
	}
	q.Format = cmp.Or(q.Format, q.Feed.Format)
	return app, access, err
}

// feedGrant returns what the key of a request permits. Keys that may search get the
// order latest, which is the same for everybody.
func (h handler) feedGrant(r *http.Request, order feed.Order) (config.App, auth.Grant, error) {
	if order == feed.Latest {
		return h.Auth.TenantUserGrant(r, auth.Recommendation, auth.OwnUser, auth.Search)
	}
	return h.Auth.TenantAccessGrant(r)
}

// feedAccess refuses a page for a user for whom the key is not, and returns what a page
// may say of the user. The order latest needs no user.
func feedAccess(app config.App, grant auth.Grant, q page.Request) (auth.Access, error) {
	switch {
	case q.Order != feed.Latest:
		return grant.Access(app, q.User)
	case q.User != "":
		return auth.FullAccess, grant.User(q.User)
	}
	return auth.FullAccess, nil
}

// anybody reports whether a request without a key may read the feed.
func (q *feedRequest) anybody() bool {
	return q.Feed.Public && (q.Format == "" || q.Format == q.Feed.Format)
}

// feedOf returns the definition of a feed, as it was at most some seconds ago.
func (h handler) feedOf(ctx context.Context, app, name string) (feed.Definition, error) {
	if err := feed.CheckName(name); err != nil {
		return feed.Definition{}, err
	}
	stored, err := h.CachedConfig.Feed(ctx, app, name)
	if errors.Is(err, config.ErrNotFound) {
		return feed.Definition{}, httpapi.Errorf(http.StatusNotFound, "Feed %s does not exist", name)
	}
	if err != nil {
		return feed.Definition{}, fmt.Errorf("read definition of feed %s/%s: %w", app, name, err)
	}
	return feed.Parse(stored.Name, stored.Version, []byte(stored.Definition))
}

// decodeUser reads the user of a request.
func (q *feedRequest) decodeUser(values url.Values, headers []string) error {
	if err := setFeedOption(q, "userToken", values["userToken"]); err != nil {
		return err
	}
	for _, user := range headers {
		if q.User != "" && q.User != user {
			return invalid("userToken and the headers x-algolia-usertoken name different users")
		}
		if err := setFeedOption(q, "userToken", []string{user}); err != nil {
			return err
		}
	}
	return nil
}

// decode reads the options of the request's format.
func (q *feedRequest) decode(values url.Values) error {
	if q.Format == feed.WordPress {
		if err := decodePosts(values, q); err != nil {
			return err
		}
	} else if err := httpapi.CheckOptions(values, feedOptions...); err != nil {
		return err
	} else if err := errors.Join(setFeedOption(q, "limit", values["limit"]), q.leaveOut(values["exclude"])); err != nil {
		return err
	}
	return setFeedOption(q, "cursor", values["cursor"])
}

// leaveOut reads the objectIDs that the page does not have. The option may be repeated.
func (q *feedRequest) leaveOut(ids []string) error {
	if len(ids) > api.MaxExcluded {
		return invalid("exclude is there %d times, it may be there %d times", len(ids), api.MaxExcluded)
	}
	for _, id := range ids {
		if id == "" || len(id) > catalog.MaxObjectID {
			return invalid("exclude must have 1 to %d bytes, got %d", catalog.MaxObjectID, len(id))
		}
	}
	q.Exclude = ids
	return nil
}

// setFeedOption reads an option if the request has it.
func setFeedOption(q *feedRequest, name string, given []string) (err error) {
	switch len(given) {
	case 0:
		return nil
	case 1:
	default:
		return invalid("%s is there %d times, it may be there once", name, len(given))
	}
	switch value := given[0]; name {
	case "userToken":
		if q.User = value; !event.ValidUserToken(value) {
			err = invalid("UserToken must contain only alphanumeric, equal, plus, slash, " +
				"hyphen, or underscore characters, and be between 1 and 129 characters long")
		}
	case "limit":
		q.Limit, err = within(name, value, 1, api.MaxFeedItems)
	case "cursor":
		if q.Cursor = value; value == "" {
			err = invalid("cursor must not be empty: leave it out for the first page")
		}
	case "format":
		q.Format = feed.Format(value)
		if !slices.Contains([]feed.Format{feed.Records, feed.IDs, feed.WordPress}, q.Format) {
			err = invalid("format must be records, ids or wordpress, got %s", quote(value))
		}
	}
	return err
}

// feedWeight is how many bytes an answer takes from the process's gate for each byte of
// its records.
const feedWeight = 2

// writeFeed answers a page.
func (h handler) writeFeed(w http.ResponseWriter, r *http.Request, q feedRequest, p page.Page) error {
	size := 1024 + len(p.Cursor)
	for _, item := range p.Items {
		size += len(item.Text) + len(item.ObjectID) + 4
	}
	if err := admission.Take(r.Context(), feedWeight*int64(size)); err != nil {
		return err
	}
	b := make([]byte, 0, size)
	if q.Format == feed.WordPress {
		return h.writePosts(w, r, q, p, b)
	}
	asOf, err := json.Marshal(api.AtMillis(p.AsOf))
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	b = append(b, `{"feed":"`+q.Feed.Name+`","order":"`+string(q.Order)+`","items":`...)
	b = appendItems(b, q.Format, p.Items)
	b = appendOrNull(append(b, `,"cursor":`...), p.Cursor)
	b = append(append(b, `,"asOf":`...), asOf...)
	b = appendOrNull(append(b, `,"fallback":`...), p.Fallback)
	if p.Person {
		b = append(b, `,"person":true`...)
	}
	if in := p.Assigned; in.Arm != "" { // names need no escapes
		b = append(b, `,"experiment":{"name":"`+in.Experiment+`","arm":"`+in.Arm+`"}`...)
	}
	return httpapi.WriteEncoded(w, http.StatusOK, append(b, '}'))
}

// appendItems appends a list: of records as they are, or of objectIDs.
func appendItems(b []byte, format feed.Format, items []page.Item) []byte {
	b = append(b, '[')
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		if format == feed.IDs {
			b, _ = jsontext.AppendQuote(b, item.ObjectID) // it is valid UTF-8
		} else {
			b = append(b, item.Text...)
		}
	}
	return append(b, ']')
}

// appendOrNull appends a text that needs no escapes.
func appendOrNull(b []byte, text string) []byte {
	if text == "" {
		return append(b, "null"...)
	}
	return append(append(append(b, '"'), text...), '"')
}
