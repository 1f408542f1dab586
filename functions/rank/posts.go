package rank

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/rank/feed"
	"github.com/affinityengine/affinity/shared/serve/page"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// writePosts answers a page as WordPress does.
func (h handler) writePosts(w http.ResponseWriter, r *http.Request, q feedRequest, p page.Page, b []byte) error {
	pages := (p.Total + q.Limit - 1) / q.Limit
	if q.Cursor == "" && !q.posts.byOffset && q.posts.page > pages && p.Total > 0 {
		return errPage(q.Offset >= feed.MaxCandidates)
	}
	head := w.Header()
	head.Set("X-WP-Total", strconv.Itoa(p.Total))
	head.Set("X-WP-TotalPages", strconv.Itoa(pages))
	if links := h.links(r, q, p, pages); len(links) > 0 {
		head.Set("Link", strings.Join(links, ", "))
	}
	b = append(b, '[')
	for i, item := range p.Items {
		if i > 0 {
			b = append(b, ',')
		}
		b = q.posts.appendTo(b, item.Text)
	}
	return httpapi.WriteExact(w, http.StatusOK, append(b, ']'))
}

// links returns the links of a page. They have the parameters of the request, also a key: a client
// that follows one adds nothing to it. The next page continues the walk by a cursor, so that it
// neither repeats nor misses posts while posts come and go.
func (h handler) links(r *http.Request, q feedRequest, p page.Page, pages int) (all []string) {
	name, before, after := "page", min(q.posts.page-1, max(1, pages)), q.posts.page+1
	first, last := q.posts.page == 1, after > pages
	if q.posts.byOffset {
		name, before, after = "offset", max(0, min(q.Offset, p.Total)-q.Limit), q.Offset+q.Limit
		first, last = q.Offset == 0, after >= p.Total
	}
	if !first {
		all = append(all, h.link(r, name, before, "", "prev"))
	}
	if !last {
		all = append(all, h.link(r, name, after, p.Cursor, "next"))
	}
	return all
}

func (h handler) link(r *http.Request, name string, value int, cursor, relation string) string {
	values := r.URL.Query()
	values.Set(name, strconv.Itoa(value))
	if values.Del("cursor"); cursor != "" {
		values.Set("cursor", cursor)
	}
	scheme, host := h.Auth.Site(r)
	u := url.URL{Scheme: scheme, Host: host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: values.Encode()}
	return fmt.Sprintf(`<%s>; rel="%s"`, u.String(), relation)
}

// mask selects members of an object by their names, and of those that are objects the members that
// the inner mask selects. nil selects the whole value.
type mask map[string]mask

// newMask returns the mask of dotted paths, nil if there are none.
func newMask(paths []string) mask {
	if len(paths) == 0 {
		return nil
	}
	m := mask{}
	for _, path := range paths {
		m.add(path)
	}
	return m
}

func (m mask) add(path string) {
	for {
		name, rest, nested := strings.Cut(path, ".")
		inner, there := m[name]
		switch {
		case there && inner == nil: // the whole is selected
			return
		case !nested:
			m[name] = nil
			return
		case !there:
			inner = mask{}
			m[name] = inner
		}
		m, path = inner, rest
	}
}

func (m mask) has(name string) (inner mask, ok bool) {
	if m == nil {
		return nil, true
	}
	inner, ok = m[name]
	return inner, ok
}

const (
	linksMember    = "_links"
	embeddedMember = "_embedded"
)

// appendTo appends what a request selects of a post. A post that it selects whole stays as it is,
// byte for byte.
func (p posts) appendTo(b, post []byte) []byte {
	embeds := bytes.Contains(post, []byte(`"`+embeddedMember+`"`))
	if p.fields == nil && (!embeds || p.embed && p.embedded == nil) {
		return append(b, post...)
	}
	return appendMembers(b, post, func(b []byte, name string, value jsontext.Value) ([]byte, bool) {
		if name == embeddedMember {
			return p.appendEmbedded(b, value)
		}
		inner, ok := p.fields.has(name)
		return appendSelected(b, value, inner), ok
	})
}

// appendEmbedded appends what a post embeds by the relations that the request selects: those of
// _embed among those of its links.
func (p posts) appendEmbedded(b []byte, embedded jsontext.Value) ([]byte, bool) {
	links, ok := p.fields.has(linksMember)
	if !ok || !p.embed {
		return b, false
	}
	length := len(b)
	b = appendMembers(b, embedded, func(b []byte, name string, value jsontext.Value) ([]byte, bool) {
		_, linked := links.has(name)
		_, asked := p.embedded.has(name)
		return append(b, value...), linked && asked
	})
	return b, string(b[length:]) != emptyList
}

// emptyList is how PHP encodes an object that nothing is left of.
const emptyList = "[]"

// appendSelected appends what a mask selects of a value, as rest_filter_response_fields of
// WordPress does: nothing within a list, and the whole of what is neither an object nor a list.
func appendSelected(b []byte, value jsontext.Value, m mask) []byte {
	switch {
	case m != nil && value.Kind() == jsontext.KindBeginArray:
		return append(b, emptyList...)
	case m == nil || value.Kind() != jsontext.KindBeginObject || string(value) == "{}":
		return append(b, value...)
	}
	return appendMembers(b, value, func(b []byte, name string, value jsontext.Value) ([]byte, bool) {
		inner, ok := m.has(name)
		return appendSelected(b, value, inner), ok
	})
}

// appendMembers appends an object with the members that add appends and wants. Their names and
// values keep their bytes. object is valid JSON.
func appendMembers(b []byte, object jsontext.Value,
	add func(b []byte, name string, value jsontext.Value) ([]byte, bool)) []byte {
	dec := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	if _, err := dec.ReadToken(); err != nil {
		return append(b, object...)
	}
	opened := len(b)
	b = append(b, '{')
	for dec.PeekKind() == jsontext.KindString {
		before := len(b)
		if before > opened+1 {
			b = append(b, ',')
		}
		quoted, err := dec.ReadValue()
		if err != nil {
			break
		}
		b = append(append(b, quoted...), ':')
		name, _ := jsontext.AppendUnquote(nil, quoted)
		value, err := dec.ReadValue()
		if err != nil {
			break
		}
		var wanted bool
		if b, wanted = add(b, string(name), value); !wanted {
			b = b[:before]
		}
	}
	if len(b) == opened+1 {
		return append(b[:opened], emptyList...)
	}
	return append(b, '}')
}
