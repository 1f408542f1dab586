package wordpress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxPerPage is how many posts, terms or users a page of WordPress has at most.
const MaxPerPage = 100

// maxPosts is the maximum number of posts of a site: the pages of a broken one
// may have no end.
var maxPosts = 10_000_000 // less in tests

// maxWalks is how often a listing is read again that changed while it was read.
const maxWalks = 3

// stamp is what the listing of all posts says of one.
type stamp struct {
	ID       int64  `json:"id"`
	Modified string `json:"modified_gmt"`
	Content  struct {
		Protected bool `json:"protected"`
	} `json:"content"`
}

// page is one page of a listing.
type page struct {
	items  []jsontext.Value // as WordPress wrote them
	number int
	total  int // of all pages; -1 if a proxy removed the header
	pages  int // -1 likewise
}

// eachPage reads the pages of a route one after the other.
func (s *Site) eachPage(ctx context.Context, route string, params url.Values, perPage int,
	handle func(page) error) error {
	var before []jsontext.Value
	for number := 1; number <= maxPosts/perPage; number++ {
		p, err := s.page(ctx, route, params, perPage, number)
		var refused *AnswerError
		if number > 1 && errors.As(err, &refused) && refused.Code == "rest_post_invalid_page_number" {
			return handle(page{number: number}) // posts left since the page before, and with them the last page
		}
		if err != nil {
			return err
		}
		if len(p.items) > 0 && slices.EqualFunc(p.items, before,
			func(a, b jsontext.Value) bool { return bytes.Equal(a, b) }) {
			return fmt.Errorf("the site answers page %d with page %d: a cache before it ignores the query", number, number-1)
		}
		if err := handle(p); err != nil {
			return err
		}
		if p.pages >= 0 && number >= p.pages || p.pages < 0 && len(p.items) == 0 {
			return nil
		}
		before = p.items
	}
	return fmt.Errorf("the site has page after page, for more than %d posts", maxPosts)
}

func (s *Site) page(ctx context.Context, route string, params url.Values, perPage, number int) (page, error) {
	query := url.Values{"per_page": {strconv.Itoa(perPage)}, "page": {strconv.Itoa(number)}}
	for name, values := range params {
		query[name] = values
	}
	p := page{number: number}
	header, err := s.get(ctx, route, query, &p.items)
	if err != nil {
		return page{}, err
	}
	p.total, p.pages = count(header.Get("X-WP-Total")), count(header.Get("X-WP-TotalPages"))
	return p, nil
}

func count(text string) int {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return n
	}
	return -1
}

// walk lists all published posts by ID: in this order a changed post keeps its
// place, and a new one comes last. A post that leaves moves others to pages that
// have been read, so the walk begins again if the total changes.
func (s *Site) walk(ctx context.Context, perPage int, progress func(done, total int)) (map[int64]stamp, error) {
	var listed map[int64]stamp
	params := url.Values{"orderby": {"id"}, "order": {"asc"}, "_fields": {"id,modified_gmt,content.protected"}}
	for range maxWalks {
		listed = map[int64]stamp{}
		steady, total := true, 0
		err := s.eachPage(ctx, "wp/v2/posts", params, perPage, func(p page) error {
			steady = steady && (p.number == 1 || p.total == total)
			total = p.total
			for _, item := range p.items {
				var one stamp
				if err := unmarshal(item, &one); err != nil || one.ID <= 0 {
					return fmt.Errorf("the list of posts holds something else: %.100s", item)
				}
				listed[one.ID] = one
			}
			progress(len(listed), total)
			return nil
		})
		if err != nil || steady {
			return listed, err
		}
	}
	return listed, nil
}

// include reads posts by their IDs, at most MaxPerPage. Those that are not
// published are missing. fields is a list as _fields takes it; "" gives the posts
// whole.
func (s *Site) include(ctx context.Context, ids []int64, fields string) ([]jsontext.Value, error) {
	params := url.Values{"include": {list(ids)}}
	if fields != "" {
		params.Set("_fields", fields)
	}
	p, err := s.page(ctx, "wp/v2/posts", params, MaxPerPage, 1)
	if err != nil {
		return nil, err
	}
	for _, item := range p.items {
		var one struct {
			ID int64 `json:"id"`
		}
		if unmarshal(item, &one) == nil && !slices.Contains(ids, one.ID) {
			return nil, unasked("posts", one.ID)
		}
	}
	return p.items, nil
}

// unasked is the error of an answer that holds another ID than the request names.
// What the request names would seem to be missing.
func unasked(kind string, id int64) error {
	return fmt.Errorf("the site answers with %s that were not asked for, such as %d: a cache before it ignores the query", kind, id)
}

func list(ids []int64) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(texts, ",")
}
