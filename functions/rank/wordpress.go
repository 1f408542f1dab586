package rank

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/rank/feed"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// The format wordpress has the parameters, headers and errors of WordPress's list of posts, so that
// a client of a site can read a feed. They are those of WP_REST_Posts_Controller in WordPress 6.

// postOptions are the query options of the format wordpress. Clients send _locale, which changes no
// post. cursor is in the Link of a page.
var postOptions = []string{"userToken", "format", "cursor", "context", "page", "per_page", "offset", "order", "orderby",
	"exclude", "exclude[]", "_fields", "_fields[]", "_embed", "_embed[]", "_locale", "placement"}

// maxSelection bounds _fields, and _embed, in bytes.
const maxSelection = 4096

// posts says which page of posts a request asks for.
type posts struct {
	page     int  // from 1
	byOffset bool // the request names an offset, which counts instead of the page
	fields   mask // nil: all
	embed    bool // with what the post embeds
	embedded mask // the relations that it embeds; nil: all
}

// decodePosts reads the options of the format wordpress. It names all that are wrong.
func decodePosts(values url.Values, q *feedRequest) error {
	var wrong parameterFaults
	if !slices.Contains([]string{"", "view"}, values.Get("context")) {
		if values.Get("context") == "edit" {
			return &postsError{http.StatusUnauthorized, "rest_forbidden_context",
				"Sorry, you are not allowed to edit posts in this post type."}
		}
		wrong.add("context", "rest_not_in_enum", "context is not view.", "")
	}
	q.posts.page = wrong.number(values, "page", 1, 1, 0)
	q.Limit = wrong.number(values, "per_page", api.DefaultPosts, 1, api.MaxFeedItems)
	q.posts.byOffset = values.Has("offset")
	q.Offset = wrong.number(values, "offset", 0, 0, 0)
	if !q.posts.byOffset {
		q.Offset = min(q.posts.page-1, feed.MaxCandidates) * q.Limit
	}
	q.Counted = true
	wrong.order(values, q)
	wrong.exclude(values, q)
	q.posts.fields = newMask(wrong.list(values, "_fields"))
	q.posts.embed = values.Has("_embed") || values.Has("_embed[]")
	if of := wrong.list(values, "_embed"); !slices.Contains([]string{"", "1", "true"}, strings.Join(of, ",")) {
		q.posts.embedded = newMask(of)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case strings.HasPrefix(strings.ToLower(name), "x-algolia-"):
		case !slices.Contains(postOptions, name):
			wrong.add(name, "rest_invalid_param", fmt.Sprintf("%.100s is no parameter of a feed: it takes page, per_page, "+
				"offset, order, orderby, exclude, context, _fields, _embed", name), "")
		case len(values[name]) > 1 && name != "exclude" && !strings.HasSuffix(name, "[]"):
			wrong.add(name, "rest_invalid_param", fmt.Sprintf("%s is there %d times, it may be there once", name,
				len(values[name])), "")
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

// order reads by what the posts are ordered. That of suggested is the user's.
func (p *parameterFaults) order(values url.Values, q *feedRequest) {
	order, by := cmp.Or(values.Get("order"), "desc"), cmp.Or(values.Get("orderby"), "date")
	switch {
	case order != "asc" && order != "desc":
		p.add("order", "rest_not_in_enum", "order is not one of asc and desc.", "")
	case q.Order == feed.Suggested && order == "asc":
		p.add("order", "rest_not_in_enum", "order is not desc. The order suggested has one direction.", "")
	case order == "asc" && values.Has("cursor"):
		p.add("order", "rest_invalid_param", "order is not desc, and a cursor has this order alone.", "")
	}
	q.Oldest = order == "asc"
	if q.Order == feed.Suggested && values.Has("orderby") {
		p.add("orderby", "rest_invalid_param",
			"orderby has no meaning for the order suggested: leave it out, or read latest", "")
	} else if by != "date" {
		p.add("orderby", "rest_not_in_enum", "orderby is not date.", "")
	}
}

// exclude reads the ids of posts that the page does not have. They are the objectIDs of their records.
func (p *parameterFaults) exclude(values url.Values, q *feedRequest) {
	for i, text := range p.list(values, "exclude") {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			p.add("exclude", "rest_invalid_type", fmt.Sprintf("exclude[%d] is not of type integer.", i),
				fmt.Sprintf(`{"param":"exclude[%d]"}`, i))
		}
		q.Exclude = append(q.Exclude, strconv.FormatInt(id, 10))
	}
}

// parameterFaults is the error of a request whose parameters are wrong, in the order in which
// WordPress looks at them.
type parameterFaults []parameterFault

type parameterFault struct{ name, code, message, data string } // data is JSON; empty: null

func (p *parameterFaults) add(name, code, message, data string) {
	const most = 20 // a client may send thousands
	named := slices.ContainsFunc(*p, func(f parameterFault) bool { return f.name == name })
	if !named && len(*p) < most {
		*p = append(*p, parameterFault{name, code, message, cmp.Or(data, "null")})
	}
}

// number reads an integer of at least low, and of at most high unless that is 0.
func (p *parameterFaults) number(values url.Values, name string, absent, low, high int) int {
	if !values.Has(name) {
		return absent
	}
	n, err := strconv.ParseInt(values.Get(name), 10, 32)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		p.add(name, "rest_invalid_type", name+" is not of type integer.", `{"param":"`+name+`"}`)
	case high == 0 && n >= int64(low), n >= int64(low) && n <= int64(high):
		return int(n)
	case high == 0:
		p.add(name, "rest_out_of_bounds", fmt.Sprintf("%s must be greater than or equal to %d", name, low), "")
	default:
		p.add(name, "rest_out_of_bounds",
			fmt.Sprintf("%s must be between %d (inclusive) and %d (inclusive)", name, low, high), "")
	}
	return absent
}

// list reads a list: several values, or one with commas or white space between its parts.
func (p *parameterFaults) list(values url.Values, name string) []string {
	text := strings.Join(append(slices.Clone(values[name]), values[name+"[]"]...), ",")
	if len(text) > maxSelection {
		p.add(name, "rest_too_long", fmt.Sprintf("%s must be at most %d characters long.", name, maxSelection), "")
		return nil
	}
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// Error names the parameters.
func (p parameterFaults) Error() string {
	names := make([]string, len(p))
	for i, f := range p {
		names[i] = short(f.name)
	}
	return "Invalid parameter(s): " + strings.Join(names, ", ")
}

// Unwrap returns the fault of the request.
func (p parameterFaults) Unwrap() error { return invalid("%s", p.Error()) }

// document returns the answer of WordPress.
func (p parameterFaults) document() []byte {
	b := append([]byte(`{"code":"rest_invalid_param","message":`), quoted(p.Error())...)
	b = append(b, `,"data":{"status":400,"params":{`...)
	for i, f := range p {
		b = fmt.Appendf(b, `%s%s:%s`, comma(i), quoted(short(f.name)), quoted(f.message))
	}
	b = append(b, `},"details":{`...)
	for i, f := range p {
		b = fmt.Appendf(b, `%s%s:{"code":"%s","message":%s,"data":%s}`, comma(i), quoted(short(f.name)), f.code,
			quoted(f.message), f.data)
	}
	return append(b, `}}}`...)
}

// short bounds what an answer repeats of the client's text.
func short(name string) string { return fmt.Sprintf("%.100s", name) }

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

func quoted(text string) []byte {
	b, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(text, "\uFFFD")) // so it is valid
	return b
}

// postsError is an answer of WordPress that is no success.
type postsError struct {
	status        int
	code, message string
}

// Error returns the message.
func (e *postsError) Error() string { return e.message }

// Unwrap returns the fault of the request.
func (e *postsError) Unwrap() error {
	if e.status == http.StatusUnauthorized {
		return fault.New(fault.Unauthenticated, "%s", e.message)
	}
	return fault.New(fault.Malformed, "%s", e.message)
}

// errPage refuses a page behind the last one. deep says that no feed has such a page.
func errPage(deep bool) error {
	e := &postsError{http.StatusBadRequest, "rest_post_invalid_page_number",
		"The page number requested is larger than the number of pages available."}
	if deep {
		e.message += fmt.Sprintf(" A feed has at most the newest %d posts of its index.", feed.MaxCandidates)
	}
	return e
}

// codes are WordPress's words for the statuses of the engine's answers.
var codes = map[int]string{
	http.StatusBadRequest:      "rest_invalid_param",
	http.StatusUnauthorized:    "rest_not_logged_in",
	http.StatusForbidden:       "rest_forbidden",
	http.StatusNotFound:        "rest_no_route",
	http.StatusTooManyRequests: "rest_too_many_requests",
}

// asWordPress gives the answer to an error the form of WordPress.
func asWordPress(err error) error {
	return httpapi.InShape(err, func(status int, message, hint string) (int, []byte) {
		if wrong, ok := errors.AsType[parameterFaults](err); ok {
			return http.StatusBadRequest, wrong.document()
		}
		if status == http.StatusUnprocessableEntity {
			status = http.StatusBadRequest // WordPress has one status for requests that are wrong
		}
		code := cmp.Or(codes[status], "rest_unavailable")
		if e, ok := errors.AsType[*postsError](err); ok {
			code = e.code
		}
		if hint != "" {
			message += ". " + hint
		}
		return status, fmt.Appendf(nil, `{"code":"%s","message":%s,"data":{"status":%d}}`, code, quoted(message), status)
	})
}
