// Package wordpresstest is a stand-in for a WordPress site, for tests. It is
// written after the REST API reference (developer.wordpress.org/rest-api:
// "Posts", "Pagination", "Global Parameters", "Discovery"). It is not recorded
// from a live site, and holds in memory what a test gives it.
package wordpresstest

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Post is a post of the site.
type Post struct {
	ID               int64
	Title, Content   string // rendered HTML
	Link             string // "" is the site's address of the post
	Status           string // "" is publish
	Password         string
	Date, Modified   time.Time
	Author           int64
	Categories, Tags []int64
}

// Site is a WordPress site on a port of this machine. Its fields may change while
// Lock is held.
type Site struct {
	sync.Mutex
	URL   string
	Posts map[int64]*Post
	// Names of terms and authors by kind (categories, tags, users) and ID, as
	// WordPress gives them: with entities.
	Names map[string]map[int64]string
	// Plain sites have no pretty permalinks: their API is in the query.
	Plain bool
	// Login is user:password of an API that wants a login; "" wants none.
	Login string
	// Intercept is called before each request, without the lock, and may answer
	// it: then it returns true. number counts the requests from 1.
	Intercept func(w http.ResponseWriter, r *http.Request, number int) bool
	// Asked are the routes of the requests with their queries.
	Asked []string
}

// New starts a site with n posts: post i has the title "Post i", was modified at
// minute i of 2026, and belongs to category 1, tags 1 and i, and author 1.
func New(t testing.TB, n int) *Site {
	t.Helper()
	s := &Site{Posts: map[int64]*Post{}, Names: map[string]map[int64]string{
		"categories": {1: "News &amp; Views"}, "tags": {1: "sneakers"}, "users": {1: "Ann O&#8217;Neil"},
	}}
	for i := int64(1); i <= int64(n); i++ {
		s.Add(i)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Start is when the posts of a site begin.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Add publishes a post as New does, and returns it.
func (s *Site) Add(id int64) *Post {
	at := Start.Add(time.Duration(id) * time.Minute)
	p := &Post{
		ID: id, Title: fmt.Sprintf("Post %d", id), Content: "<p>Text</p>\n", Date: at, Modified: at,
		Author: 1, Categories: []int64{1}, Tags: []int64{1, id},
	}
	s.Posts[id] = p
	if id > 1 {
		s.Names["tags"][id] = fmt.Sprintf("tag %d", id)
	}
	return p
}

// Reset forgets the requests, and sets another interceptor.
func (s *Site) Reset(intercept func(http.ResponseWriter, *http.Request, int) bool) {
	s.Lock()
	defer s.Unlock()
	s.Asked, s.Intercept = nil, intercept
}

// ServeHTTP answers as WordPress does.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route := strings.TrimPrefix(r.URL.Path, "/wp-json/")
	if at := r.URL.Query().Get("rest_route"); s.Plain && at != "" {
		route = strings.TrimPrefix(at, "/")
	}
	s.Lock()
	s.Asked = append(s.Asked, r.Method+" "+route+"?"+r.URL.RawQuery)
	intercept, number := s.Intercept, len(s.Asked)
	s.Unlock()
	if intercept != nil && intercept(w, r, number) {
		return
	}
	s.Lock()
	defer s.Unlock()
	if route == "/" {
		root := s.URL + "/wp-json/"
		if s.Plain {
			root = s.URL + "/index.php?rest_route=/"
		}
		w.Header().Add("Link", `<`+s.URL+`/feed>; rel="alternate"`)
		w.Header().Add("Link", `<`+root+`>; rel="https://api.w.org/"`)
		w.Header().Set("Content-Type", "text/html; charset=UTF-8")
		return
	}
	user, password, _ := r.BasicAuth()
	switch kind, ok := strings.CutPrefix(route, "wp/v2/"); {
	case s.Login != "" && user+":"+password != s.Login:
		Fail(w, http.StatusUnauthorized, "rest_not_logged_in", "You are not currently logged in.")
	case s.Plain && !strings.HasPrefix(r.URL.Path, "/index.php"), !ok:
		Fail(w, http.StatusNotFound, "rest_no_route", "No route was found matching the URL and request method.")
	case kind == "posts":
		s.posts(w, r)
	case s.Names[kind] != nil:
		s.names(w, r, kind)
	default:
		Fail(w, http.StatusNotFound, "rest_no_route", "No route was found matching the URL and request method.")
	}
}

// Fail answers an error as WordPress does.
func Fail(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"code":%q,"message":%q,"data":{"status":%d}}`, code, message, status)
}

func (s *Site) posts(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Get("context") == "edit" {
		Fail(w, http.StatusUnauthorized, "rest_forbidden_context",
			"Sorry, you are not allowed to edit posts in this post type.")
		return
	}
	posts, ok := s.selected(w, r)
	if !ok {
		return
	}
	var less func(a, b *Post) int
	switch query.Get("orderby") {
	case "id":
		less = func(a, b *Post) int { return cmp.Compare(a.ID, b.ID) }
	case "modified":
		less = func(a, b *Post) int { return cmp.Or(a.Modified.Compare(b.Modified), cmp.Compare(a.ID, b.ID)) }
	default:
		less = func(a, b *Post) int { return cmp.Or(a.Date.Compare(b.Date), cmp.Compare(a.ID, b.ID)) }
	}
	slices.SortFunc(posts, less)
	if query.Get("order") != "asc" {
		slices.Reverse(posts)
	}
	number, ok := s.paged(w, r, len(posts))
	if !ok {
		return
	}
	per := perPage(r)
	from := (number - 1) * per
	if at, err := strconv.Atoi(query.Get("offset")); err == nil {
		from = at
	}
	some := posts[min(from, len(posts)):min(from+per, len(posts))]
	items := make([]string, len(some))
	for i, p := range some {
		_, embed := query["_embed"]
		items[i] = encode(fields(s.render(p, embed), strings.Join(append(query["_fields[]"], query["_fields"]...), ",")))
	}
	answer(w, items)
}

// selected are the published posts that a request names.
func (s *Site) selected(w http.ResponseWriter, r *http.Request) (posts []*Post, ok bool) {
	after, include := time.Time{}, ids(r)
	if text := r.URL.Query().Get("modified_after"); text != "" {
		var err error
		if after, err = time.Parse(time.RFC3339, text); err != nil {
			Fail(w, http.StatusBadRequest, "rest_invalid_param", "Invalid parameter(s): modified_after")
			return nil, false
		}
	}
	for _, p := range s.Posts {
		published := p.Status == "" || p.Status == "publish"
		if published && p.Modified.After(after) && (include == nil || include[p.ID]) {
			posts = append(posts, p)
		}
	}
	return posts, true
}

// paged writes the headers of a page.
func (s *Site) paged(w http.ResponseWriter, r *http.Request, total int) (number int, ok bool) {
	per := perPage(r)
	if per < 1 || per > 100 {
		invalid(w, "per_page", "rest_out_of_bounds", "per_page must be between 1 (inclusive) and 100 (inclusive)", "null")
		return 0, false
	}
	number, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("page"), "1"))
	if err != nil {
		invalid(w, "page", "rest_invalid_type", "page is not of type integer.", `{"param":"page"}`)
		return 0, false
	}
	pages := (total + per - 1) / per
	if number > pages && total > 0 {
		Fail(w, http.StatusBadRequest, "rest_post_invalid_page_number",
			"The page number requested is larger than the number of pages available.")
		return 0, false
	}
	w.Header().Set("X-WP-Total", strconv.Itoa(total))
	w.Header().Set("X-WP-TotalPages", strconv.Itoa(pages))
	link := func(page int, relation string) string {
		to := *r.URL
		query := to.Query()
		query.Set("page", strconv.Itoa(page))
		to.RawQuery = query.Encode()
		return `<` + s.URL + to.RequestURI() + `>; rel="` + relation + `"`
	}
	var links []string
	if number > 1 {
		links = append(links, link(min(number-1, pages), "prev"))
	}
	if number < pages {
		links = append(links, link(number+1, "next"))
	}
	if len(links) > 0 {
		w.Header().Add("Link", strings.Join(links, ", "))
	}
	return number, true
}

// invalid answers a parameter that is wrong.
func invalid(w http.ResponseWriter, name, code, message, data string) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"code":"rest_invalid_param","message":"Invalid parameter(s): %s","data":{"status":400,"params":{"%s":%q},`+
		`"details":{"%s":{"code":"%s","message":%q,"data":%s}}}}`, name, name, message, name, code, message, data)
}

// names answers terms or users by their IDs.
func (s *Site) names(w http.ResponseWriter, r *http.Request, kind string) {
	include := ids(r)
	var items []string
	for id, name := range s.Names[kind] {
		if include == nil || include[id] {
			items = append(items, encode(fields(object{{"id", id}, {"count", 1}, {"name", name}, {"slug", "x"}},
				r.URL.Query().Get("_fields"))))
		}
	}
	slices.Sort(items)
	if number, ok := s.paged(w, r, len(items)); ok {
		per := perPage(r)
		answer(w, items[min((number-1)*per, len(items)):min(number*per, len(items))])
	}
}

func perPage(r *http.Request) int {
	per, _ := strconv.Atoi(cmp.Or(r.URL.Query().Get("per_page"), "10"))
	return per
}

// ids are those of the parameter include, nil without it.
func ids(r *http.Request) map[int64]bool {
	text := r.URL.Query().Get("include")
	if text == "" {
		return nil
	}
	named := map[int64]bool{}
	for _, one := range strings.Split(text, ",") {
		id, _ := strconv.ParseInt(one, 10, 64)
		named[id] = true
	}
	return named
}

func answer(w http.ResponseWriter, items []string) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	fmt.Fprintf(w, "[%s]", strings.Join(items, ","))
}
