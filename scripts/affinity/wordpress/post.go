package wordpress

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/api"
)

// post is what the sync reads of a post.
type post struct {
	ID       int64  `json:"id"`
	Date     string `json:"date_gmt"`
	Modified string `json:"modified_gmt"`
	Status   string `json:"status"`
	Link     string `json:"link"`
	Title    struct {
		Rendered string `json:"rendered"`
	} `json:"title"`
	Content struct {
		Protected bool `json:"protected"`
	} `json:"content"`
	Author     int64   `json:"author"`
	Categories []int64 `json:"categories"`
	Tags       []int64 `json:"tags"`

	raw []byte // the post, byte for byte
}

// unmarshal takes names in their exact case, unlike encoding/json: a plugin's ID
// is not the id.
func unmarshal(value jsontext.Value, v any) error { return json.Unmarshal(value, v, lenient) }

// Record is a post in the catalog.
type Record struct {
	ObjectID    string   `json:"objectID"`
	Title       string   `json:"title"`
	URL         string   `json:"url"`                  // http or https, or empty
	PublishedAt string   `json:"publishedAt,omitzero"` // RFC 3339
	ModifiedAt  string   `json:"modifiedAt,omitzero"`  // RFC 3339
	Categories  []string `json:"categories"`
	Tags        []string `json:"tags"`
	Author      string   `json:"author,omitzero"`
	// WordPress is the post as WordPress wrote it, byte for byte. Empty if the
	// record has no room for it.
	WordPress string `json:"wordpress,omitzero"`
}

// Reasons why a post is not in the index, or not whole.
const (
	reasonProtected = "password-protected"
	reasonStatus    = "not published"
	reasonTooLarge  = "too large even without its WordPress form"
	reasonUnread    = "not what WordPress sends as a post"
	reasonRefused   = "refused by the engine"
)

// unfit is the reason why a post may not enter, "" if it may.
func (p *post) unfit() string {
	switch {
	case p.Content.Protected:
		return reasonProtected
	case p.Status != "publish":
		return reasonStatus
	}
	return ""
}

// record encodes a post for the catalog. whole is false if it has no room for the
// WordPress form. A record that is too large even so is nil.
func (p *post) record(n *names, author string) (encoded []byte, whole bool, err error) {
	r := Record{
		ObjectID: strconv.FormatInt(p.ID, 10), Title: plain(p.Title.Rendered), URL: address(p.Link),
		PublishedAt: instant(p.Date), ModifiedAt: instant(p.Modified),
		Categories: n.of(categories, p.Categories), Tags: n.of(tags, p.Tags), Author: plain(author),
	}
	if utf8.Valid(p.raw) { // JSON holds no other text
		r.WordPress = string(p.raw)
	}
	for {
		whole = r.WordPress != ""
		if encoded, err = json.Marshal(r); err != nil {
			return nil, false, fmt.Errorf("encode post %d: %w", p.ID, err)
		}
		if len(encoded) <= api.MaxRecord {
			return encoded, whole, nil
		}
		if !whole {
			return nil, false, nil
		}
		r.WordPress = ""
	}
}

// address is the link of a post, "" if it is not of the web: a page that shows it
// as a link would run a javascript: address.
func address(link string) string {
	u, err := url.Parse(link)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || !utf8.ValidString(link) {
		return ""
	}
	return link
}

// instant turns a date_gmt, which has no zone, into RFC 3339. "" if it is no date.
func instant(gmt string) string {
	t, err := time.Parse("2006-01-02T15:04:05", gmt)
	if err != nil || t.Year() < 1 {
		return ""
	}
	return t.Format(time.RFC3339)
}

var markup = regexp.MustCompile(`</?[a-zA-Z][^<>]*>`)

// plain turns HTML of one line into text: titles and names come with entities,
// and titles with markup. It is text for search and for people: who puts it into
// a page escapes it.
func plain(rendered string) string {
	text := html.UnescapeString(markup.ReplaceAllString(strings.ToValidUTF8(rendered, "\uFFFD"), ""))
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// digest is a short hash, for the comparison of a record with the one stored.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// distinct are the texts without empty and repeated ones, in their order.
func distinct(texts []string) []string {
	kept := []string{}
	for _, text := range texts {
		if text != "" && !slices.Contains(kept, text) {
			kept = append(kept, text)
		}
	}
	return kept
}
