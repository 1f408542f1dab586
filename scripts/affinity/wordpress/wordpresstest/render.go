package wordpresstest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
)

// object is a JSON object in the order of its members.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:", m.name)
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(m.value); err != nil {
			return nil, err
		}
		b.Truncate(b.Len() - 1) // the newline
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Raw is a post as a list of posts gives it to everybody.
func (s *Site) Raw(id int64) string {
	s.Lock()
	defer s.Unlock()
	return encode(s.render(s.Posts[id], false))
}

// render is the schema of a post in context view.
func (s *Site) render(p *Post, embed bool) object {
	const layout = "2006-01-02T15:04:05"
	site := func(path string, args ...any) string { return s.URL + fmt.Sprintf(path, args...) }
	local := p.Date.Add(9 * 60 * 60 * 1e9) // the site is in Tokyo
	content := p.Content
	if p.Password != "" {
		content = ""
	}
	post := object{
		{"id", p.ID}, {"date", local.Format(layout)}, {"date_gmt", p.Date.Format(layout)},
		{"guid", object{{"rendered", site("/?p=%d", p.ID)}}},
		{"modified", p.Modified.Add(9 * 60 * 60 * 1e9).Format(layout)}, {"modified_gmt", p.Modified.Format(layout)},
		{"slug", fmt.Sprintf("post-%d", p.ID)}, {"status", "publish"}, {"type", "post"},
		{"link", cmp.Or(p.Link, site("/2026/post-%d/", p.ID))},
		{"title", object{{"rendered", p.Title}}},
		{"content", object{{"rendered", content}, {"protected", p.Password != ""}}},
		{"excerpt", object{{"rendered", ""}, {"protected", p.Password != ""}}},
		{"author", p.Author}, {"featured_media", 0}, {"comment_status", "open"}, {"ping_status", "open"}, {"sticky", false},
		{"template", ""}, {"format", "standard"}, {"meta", []any{}}, {"categories", p.Categories}, {"tags", p.Tags},
		{"_links", object{
			{"self", []object{{{"href", site("/wp-json/wp/v2/posts/%d", p.ID)}}}},
			{"author", []object{{{"embeddable", true}, {"href", site("/wp-json/wp/v2/users/%d", p.Author)}}}},
			{"wp:term", []object{
				{{"taxonomy", "category"}, {"embeddable", true}, {"href", site("/wp-json/wp/v2/categories?post=%d", p.ID)}},
				{{"taxonomy", "post_tag"}, {"embeddable", true}, {"href", site("/wp-json/wp/v2/tags?post=%d", p.ID)}},
			}},
			{"curies", []object{{{"name", "wp"}, {"href", "https://api.w.org/{rel}"}, {"templated", true}}}},
		}},
	}
	if embed {
		post = append(post, member{"_embedded", object{
			{"author", []object{{{"id", p.Author}, {"name", s.Names["users"][p.Author]}}}},
			{"wp:term", [][]object{s.terms("categories", p.Categories), s.terms("tags", p.Tags)}},
		}})
	}
	return post
}

func (s *Site) terms(kind string, ids []int64) []object {
	terms := []object{}
	for _, id := range ids {
		terms = append(terms, object{{"id", id}, {"name", s.Names[kind][id]}})
	}
	return terms
}

// fields keeps the members that _fields lists: a name, or a name within an object.
func fields(o object, list string) object {
	if list == "" {
		return o
	}
	var kept object
	for _, m := range o {
		inner, nested := m.value.(object)
		var within []string
		for _, field := range strings.Split(list, ",") {
			if field == m.name {
				nested, within = false, []string{""}
			} else if rest, ok := strings.CutPrefix(field, m.name+"."); ok && nested {
				within = append(within, rest)
			}
		}
		switch {
		case len(within) > 0 && nested:
			kept = append(kept, member{m.name, fields(inner, strings.Join(within, ","))})
		case len(within) > 0:
			kept = append(kept, m)
		}
	}
	return kept
}

// encode writes JSON as PHP does: ASCII, with a backslash before each slash.
func encode(o object) string {
	text, err := o.MarshalJSON()
	if err != nil {
		panic(err) // a test's mistake
	}
	var b strings.Builder
	for _, r := range string(text) {
		switch {
		case r == '/':
			b.WriteString(`\/`)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		case r > 0x7e:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
