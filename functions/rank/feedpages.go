package rank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/feed"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/serve/page"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// feedOptions are the query options of a page of a feed.
var feedOptions = []string{"userToken", "limit", "cursor", "format"}

// feedPage answers a page of a feed in one of its orders.
func (h handler) feedPage(order feed.Order) httpapi.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		app, grant, err := h.feedGrant(r, order)
		if err != nil {
			return err
		}
		q, err := decodeFeed(r, order)
		if err != nil {
			return err
		}
		access, err := feedAccess(app, grant, q)
		if err != nil {
			return err
		}
		if q.Feed, err = h.feedOf(r.Context(), app.ID, r.PathValue("name")); err != nil {
			return err
		}
		if err := grant.Index(q.Feed.Index); err != nil {
			return err
		}
		if q.Format == "" {
			q.Format = q.Feed.Format
		}
		if access != auth.FullAccess {
			q.Feed.Seen = ranking.Keep // it would say which records the user's events name
		}
		h.Usage.Reads(app.ID, 1)
		p, err := h.Pages.Read(r.Context(), app, q)
		if err != nil {
			return fmt.Errorf("read feed: %w", err)
		}
		if access != auth.FullAccess {
			p.Fallback = "" // it would say whether the user is known
		}
		return writeFeed(w, r, q, p)
	}
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

// decodeFeed reads the options of a request.
func decodeFeed(r *http.Request, order feed.Order) (page.Request, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return page.Request{}, invalid("The query of the URL is malformed: percent-encode its values")
	}
	q := page.Request{Order: order, Limit: api.DefaultFeedItems}
	for _, name := range feedOptions {
		switch given := values[name]; len(given) {
		case 0:
		case 1:
			if err := setFeedOption(&q, name, given[0]); err != nil {
				return page.Request{}, err
			}
		default:
			return page.Request{}, invalid("%s is there %d times, it may be there once", name, len(given))
		}
	}
	for _, user := range r.Header.Values(userHeader) {
		if q.User != "" && q.User != user {
			return page.Request{}, invalid("userToken and the headers x-algolia-usertoken name different users")
		}
		if err := setFeedOption(&q, "userToken", user); err != nil {
			return page.Request{}, err
		}
	}
	return q, nil
}

func setFeedOption(q *page.Request, name, value string) (err error) {
	switch name {
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
func writeFeed(w http.ResponseWriter, r *http.Request, q page.Request, p page.Page) error {
	size := 1024 + len(p.Cursor)
	for _, item := range p.Items {
		size += len(item.Text) + len(item.ObjectID) + 4
	}
	if err := admission.Take(r.Context(), feedWeight*int64(size)); err != nil {
		return err
	}
	b := make([]byte, 0, size)
	if q.Format == feed.WordPress {
		head := w.Header()
		head.Set("X-WP-Total", strconv.Itoa(p.Total))
		head.Set("X-WP-TotalPages", strconv.Itoa((p.Total+q.Limit-1)/q.Limit))
		if p.Cursor != "" {
			head.Set("Link", "<"+nextPage(r.URL, p.Cursor)+`>; rel="next"`)
		}
		return httpapi.WriteEncoded(w, http.StatusOK, appendItems(b, q.Format, p.Items))
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
	return httpapi.WriteEncoded(w, http.StatusOK, append(b, '}'))
}

// appendItems appends a list: of records and posts as they are, or of objectIDs.
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

// nextPage returns the reference of the next page, relative to the request. It leaves
// credentials out.
func nextPage(u *url.URL, cursor string) string {
	values := u.Query()
	for name := range values {
		if strings.HasPrefix(strings.ToLower(name), "x-algolia-") {
			delete(values, name)
		}
	}
	values.Set("cursor", cursor)
	return u.EscapedPath() + "?" + values.Encode()
}
