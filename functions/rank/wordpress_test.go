package rank_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/functions/catalog"
	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// plainPost is a post as WordPress writes it, and embeddingPost one with what it embeds.
func plainPost(id int) string {
	return fmt.Sprintf(`{"id":%d,"link":"https:\/\/a.example\/%d","title":{"rendered":"P\u00e9 %d","x":1},"meta":{},"tags":[1,2],`+
		`"_links":{"self":[{"href":"s"}],"author":[{"embeddable":true,"href":"a"}]}}`, id, id, id)
}

const embedded = `"_embedded":{"author":[{"id":1}],"wp:term":[[{"id":2}]]}`

func embeddingPost(id int) string { return plainPost(id)[:len(plainPost(id))-1] + "," + embedded + "}" }

// site starts an app with the feed blog of 23 posts, an hour apart, the newest first by their ids:
// the third embeds. Two further records have no post. ann likes red, which every fifth post is.
func site(t *testing.T) http.Handler {
	t.Helper()
	s := functiontest.Start(t)
	functiontest.SetStrategy(t, s, strategy.Strategy{
		EventsScoring:         []strategy.EventScore{{EventName: "Read", EventType: event.View, Score: 3}},
		FacetsScoring:         []strategy.FacetScore{{FacetName: "tags", Score: 10}},
		PersonalizationImpact: 100, Ranking: strategy.PlainRanking(),
	})
	setFeed(t, s, "blog", `{"index":"posts","date":"at","format":"wordpress"}`)
	setFeed(t, s, "unseen", `{"index":"posts","date":"at","format":"wordpress","seen":"exclude"}`)
	now := time.Now()
	var actions []string
	for i := range 25 {
		r := map[string]any{"objectID": fmt.Sprint(i), "at": now.Add(-time.Duration(i) * time.Hour).UnixMilli(), "wordpress": plainPost(i)}
		switch {
		case i == 3:
			r["wordpress"] = embeddingPost(i)
		case i == 7:
			delete(r, "wordpress")
		case i == 13:
			r["wordpress"] = "no post"
		}
		if i%5 == 0 {
			r["tags"] = "red"
		}
		body, err := json.Marshal(map[string]any{"action": "addObject", "body": r})
		must.Succeed(t, err)
		actions = append(actions, string(body))
	}
	functiontest.Do(t, catalog.New(s.Backends.ForCatalog()), "addObject", "POST", "/1/indexes/posts/batch", `{"requests":[`+strings.Join(actions, ",")+`]}`)
	line := fmt.Sprintf(`{"eventType":"view","eventName":"Read","index":"posts","userToken":"ann","timestamp":%d,"filters":["tags:red"],"objectIDs":["5"]}`, now.Add(-time.Hour).UnixMilli())
	functiontest.Do(t, imports.New(s.Backends.ForImports()), "admin", "POST", "/1/events/import", strings.Replace(line, `"filters":["tags:red"],`, "", 1))
	functiontest.Do(t, imports.New(s.Backends.ForImports()), "admin", "POST", "/1/events/import", strings.Replace(line, `,"objectIDs":["5"]`, "", 1))
	return rank.New(s.Backends.ForRank())
}

// ids23 are the ids of the posts of site in the order latest.
func ids23() []int {
	var ids []int
	for i := range 25 {
		if i != 7 && i != 13 {
			ids = append(ids, i)
		}
	}
	return ids
}

// postsOf are posts without what they embed, as an answer has them.
func postsOf(ids []int) string {
	list := []string{}
	for _, id := range ids {
		list = append(list, plainPost(id))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// get returns an answer and its ids.
func get(t *testing.T, h http.Handler, path string) (*httptest.ResponseRecorder, []int) {
	t.Helper()
	r := functiontest.NewRequest("recommendation", "GET", path, "")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var list []struct{ ID int }
	_ = json.Unmarshal(w.Body.Bytes(), &list) // of another answer it has none
	ids := []int{}
	for _, p := range list {
		ids = append(ids, p.ID)
	}
	return w, ids
}

var linkForm = regexp.MustCompile(`<([^>]*)>; rel="([a-z]+)"`)

// linksOf returns the links of an answer by their relations.
func linksOf(t *testing.T, w *httptest.ResponseRecorder) map[string]*url.URL {
	t.Helper()
	links := map[string]*url.URL{}
	for _, found := range linkForm.FindAllStringSubmatch(w.Header().Get("Link"), -1) {
		u, err := url.Parse(found[1])
		must.Succeed(t, err)
		links[found[2]] = u
	}
	return links
}

// Pages by their numbers and by offsets are parts of one order, in both directions.
func TestPostsByPage(t *testing.T) {
	h := site(t)
	for _, order := range []string{"latest?", "latest?order=asc&", "suggested?userToken=ann&", "suggested?"} {
		path := "/1/feeds/blog/" + order
		_, whole := get(t, h, path+"per_page=100")
		if len(whole) != 23 {
			t.Fatalf("%s: %v", order, whole)
		}
		want := ids23()
		if order == "latest?order=asc&" {
			slices.Reverse(want)
		}
		if diff := cmp.Diff(want, whole); strings.HasPrefix(order, "latest") && diff != "" {
			t.Errorf("%s (-want +got):\n%s", order, diff)
		}
		for _, per := range []int{0, 1, 5, 23, 100} {
			size, query := per, fmt.Sprintf("per_page=%d&", per)
			if per == 0 {
				size, query = 10, ""
			}
			pages := (23 + size - 1) / size
			for page := 1; page <= pages; page++ {
				from := (page - 1) * size
				for _, place := range []string{fmt.Sprintf("page=%d", page), fmt.Sprintf("offset=%d", from), fmt.Sprintf("offset=%d&page=99", from)} {
					w, got := get(t, h, path+query+place)
					if diff := cmp.Diff(whole[from:min(from+size, 23)], got); diff != "" {
						t.Errorf("%s%s%s (-want +got):\n%s", path, query, place, diff)
					}
					if w.Header().Get("X-WP-Total") != "23" || w.Header().Get("X-WP-TotalPages") != fmt.Sprint(pages) {
						t.Errorf("%s%s%s: %v", path, query, place, w.Header())
					}
					name, before, after := "page", page-1, page+1
					if strings.HasPrefix(place, "offset") {
						name, before, after = "offset", max(0, from-size), from+size
					}
					links := linksOf(t, w)
					if u := links["prev"]; (u == nil) != (page == 1) || u != nil && u.Query().Get(name) != fmt.Sprint(before) {
						t.Errorf("%s%s%s: previous %v", path, query, place, u)
					}
					if u := links["next"]; (u == nil) != (page == pages) || u != nil && u.Query().Get(name) != fmt.Sprint(after) {
						t.Errorf("%s%s%s: next %v", path, query, place, u)
					}
				}
			}
			w, _ := get(t, h, path+query+fmt.Sprintf("page=%d", pages+1))
			if want := `{"code":"rest_post_invalid_page_number","message":"The page number requested is larger than the number of pages available.","data":{"status":400}}`; w.Code != 400 || w.Body.String() != want {
				t.Errorf("behind the last page: %d %s", w.Code, w.Body)
			}
		}
	}
	w, got := get(t, h, "/1/feeds/blog/latest?offset=23")
	if w.Body.String() != "[]" || len(got) > 0 || w.Header().Get("X-WP-Total") != "23" || linksOf(t, w)["next"] != nil || linksOf(t, w)["prev"].Query().Get("offset") != "13" {
		t.Errorf("behind the end: %s %v", w.Body, w.Header())
	}
	for _, place := range []string{"page=501&per_page=10", "page=2147483647&per_page=100"} {
		w, _ = get(t, h, "/1/feeds/blog/suggested?"+place)
		if w.Code != 400 || !strings.Contains(w.Body.String(), "at most the newest 5000 posts of its index") {
			t.Errorf("deeper than every feed: %d %s", w.Code, w.Body)
		}
	}
}

// The bytes are those of WordPress, without a newline. A walk along the links shows each post once.
func TestPostsByLinks(t *testing.T) {
	h := site(t)
	for _, order := range []string{"latest", "suggested"} {
		var walked []int
		next := "/1/feeds/blog/" + order + "?per_page=4&_locale=user"
		for next != "" {
			r := functiontest.NewRequest("recommendation", "GET", next, "")
			r.Host = "api.example.com:8443"
			r.Header.Set("X-Forwarded-Proto", "https")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			var list []struct{ ID int }
			must.Succeed(t, json.Unmarshal(w.Body.Bytes(), &list))
			ids := []int{}
			for _, p := range list {
				ids = append(ids, p.ID)
			}
			if w.Body.String() != postsOf(ids) {
				t.Errorf("%s: %q", next, w.Body)
			}
			if w.Header().Get("X-WP-Total") != "23" || w.Header().Get("X-WP-TotalPages") != "6" {
				t.Errorf("%s: %v", next, w.Header())
			}
			walked = append(walked, ids...)
			next = ""
			if u := linksOf(t, w)["next"]; u != nil {
				if u.Scheme != "https" || u.Host != "api.example.com:8443" || u.Query().Get("cursor") == "" || u.Query().Get("_locale") != "user" {
					t.Fatalf("the next page is %s", u)
				}
				next = u.RequestURI()
			}
		}
		if order == "latest" {
			if diff := cmp.Diff(ids23(), walked); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		slices.Sort(walked)
		if diff := cmp.Diff(ids23(), walked); diff != "" {
			t.Errorf("%s, sorted (-want +got):\n%s", order, diff)
		}
	}
	// A key in the query is in the links, because the client that follows one adds nothing.
	r := httptest.NewRequest("GET", "/1/feeds/blog/latest?x-algolia-application-id="+functiontest.App+"&x-algolia-api-key=search", nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	r = httptest.NewRequest("GET", linksOf(t, w)["next"].RequestURI(), nil)
	next := httptest.NewRecorder()
	if h.ServeHTTP(next, r); w.Code != 200 || next.Code != 200 || next.Body.String() != postsOf(ids23()[10:20]) {
		t.Errorf("%d %v, then %d %s", w.Code, w.Header(), next.Code, next.Body)
	}
}

// Excluded posts are in no page, and not in the number of posts.
func TestExcludedPosts(t *testing.T) {
	h := site(t)
	for _, query := range []string{"exclude=0,011,4&exclude=99", "exclude[]=0&exclude[]=4&exclude=11"} {
		want := slices.DeleteFunc(ids23(), func(id int) bool { return id == 0 || id == 4 || id == 11 })
		for _, order := range []string{"latest", "suggested"} {
			var pages, links []int
			next := "/1/feeds/blog/" + order + "?per_page=7&" + query
			for page := 1; page <= 3; page++ {
				w, ids := get(t, h, fmt.Sprintf("/1/feeds/blog/%s?per_page=7&%s&page=%d", order, query, page))
				if pages = append(pages, ids...); w.Header().Get("X-WP-Total") != "20" || w.Header().Get("X-WP-TotalPages") != "3" {
					t.Errorf("%s?%s: %v", order, query, w.Header())
				}
				w, ids = get(t, h, next)
				if links = append(links, ids...); page < 3 {
					next = linksOf(t, w)["next"].RequestURI()
				}
			}
			slices.Sort(pages)
			slices.Sort(links)
			if diff := cmp.Diff(want, pages) + cmp.Diff(want, links); diff != "" {
				t.Errorf("%s?%s by pages and by links (-want +got):\n%s", order, query, diff)
			}
		}
	}
}

// What a user has seen is in no page and not in the number of posts.
func TestUnseenPosts(t *testing.T) {
	h := site(t)
	var got []int
	for page := 1; page <= 3; page++ {
		w, ids := get(t, h, fmt.Sprintf("/1/feeds/unseen/suggested?userToken=ann&page=%d", page))
		if w.Header().Get("X-WP-Total") != "22" {
			t.Errorf("page %d: %v", page, w.Header())
		}
		got = append(got, ids...)
	}
	slices.Sort(got)
	want := slices.DeleteFunc(ids23(), func(id int) bool { return id == 5 })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPostsSelected(t *testing.T) {
	h := site(t)
	const (
		links  = `"_links":{"self":[{"href":"s"}],"author":[{"embeddable":true,"href":"a"}]}`
		author = `"_embedded":{"author":[{"id":1}]}`
	)
	for query, want := range map[string]string{
		"":                                   plainPost(3),
		"_embed":                             embeddingPost(3),
		"_embed=1":                           embeddingPost(3),
		"_embed=author":                      strings.Replace(embeddingPost(3), embedded, author, 1),
		"_embed[]=author":                    strings.Replace(embeddingPost(3), embedded, author, 1),
		"_embed=author,wp:term":              embeddingPost(3),
		"_embed=replies":                     plainPost(3),
		"_fields=":                           plainPost(3),
		"_fields=title,id":                   `{"id":3,"title":{"rendered":"P\u00e9 3","x":1}}`,
		"_fields[]=title&_fields[]=id":       `{"id":3,"title":{"rendered":"P\u00e9 3","x":1}}`,
		"_fields=id,+title.rendered":         `{"id":3,"title":{"rendered":"P\u00e9 3"}}`,
		"_fields=title.rendered,title":       `{"title":{"rendered":"P\u00e9 3","x":1}}`,
		"_fields=title,title.rendered,id":    `{"id":3,"title":{"rendered":"P\u00e9 3","x":1}}`,
		"_fields=link,meta":                  `{"link":"https:\/\/a.example\/3","meta":{}}`,
		"_fields=meta.x":                     `{"meta":{}}`,
		"_fields=title.none":                 `{"title":[]}`,
		"_fields=tags.name":                  `{"tags":[]}`,
		"_fields=id.x":                       `{"id":3}`,
		"_fields=none":                       `[]`,
		"_fields=id&_embed":                  `{"id":3}`,
		"_fields=id,_embedded&_embed":        `{"id":3}`,
		"_fields=id,_links,_embedded&_embed": `{"id":3,` + links + `,` + embedded + `}`,
		"_fields=id,_links":                  `{"id":3,` + links + `}`,
		"_fields=id,_links.author&_embed":    `{"id":3,"_links":{"author":[{"embeddable":true,"href":"a"}]},` + author + `}`,
		"_fields=id,_links.author&_embed=x":  `{"id":3,"_links":{"author":[{"embeddable":true,"href":"a"}]}}`,
		"context=view&orderby=date&order=desc&_locale=user": plainPost(3),
	} {
		w, _ := get(t, h, "/1/feeds/blog/latest?offset=3&per_page=1&"+query)
		if w.Code != 200 || w.Body.String() != "["+want+"]" {
			t.Errorf("%s: %d\n got %s\nwant [%s]", query, w.Code, w.Body, want)
		}
	}
}

// Mistakes are answered as WordPress answers them.
func TestPostsRefused(t *testing.T) {
	h := site(t)
	wrong := func(name, code, message, data string) string {
		return fmt.Sprintf(`{"code":"rest_invalid_param","message":"Invalid parameter(s): %s","data":{"status":400,"params":{"%s":"%s"},"details":{"%s":{"code":"%s","message":"%s","data":%s}}}}`,
			name, name, message, name, code, message, data)
	}
	const perPage = "per_page must be between 1 (inclusive) and 100 (inclusive)"
	for query, want := range map[string]string{
		"latest?per_page=101":                          wrong("per_page", "rest_out_of_bounds", perPage, "null"),
		"latest?per_page=0":                            wrong("per_page", "rest_out_of_bounds", perPage, "null"),
		"latest?per_page=-1":                           wrong("per_page", "rest_out_of_bounds", perPage, "null"),
		"latest?per_page=9999999999999":                wrong("per_page", "rest_out_of_bounds", perPage, "null"),
		"latest?per_page=ten":                          wrong("per_page", "rest_invalid_type", "per_page is not of type integer.", `{"param":"per_page"}`),
		"latest?page=":                                 wrong("page", "rest_invalid_type", "page is not of type integer.", `{"param":"page"}`),
		"latest?page=0":                                wrong("page", "rest_out_of_bounds", "page must be greater than or equal to 1", "null"),
		"latest?order=up":                              wrong("order", "rest_not_in_enum", "order is not one of asc and desc.", "null"),
		"latest?orderby=title":                         wrong("orderby", "rest_not_in_enum", "orderby is not date.", "null"),
		"latest?exclude=3,x":                           wrong("exclude", "rest_invalid_type", "exclude[1] is not of type integer.", `{"param":"exclude[1]"}`),
		"latest?context=embed":                         wrong("context", "rest_not_in_enum", "context is not view.", "null"),
		"suggested?order=asc":                          wrong("order", "rest_not_in_enum", "order is not desc. The order suggested has one direction.", "null"),
		"latest?context=edit":                          `{"code":"rest_forbidden_context","message":"Sorry, you are not allowed to edit posts in this post type.","data":{"status":401}}`,
		"latest?page=x&per_page=0":                     `"message":"Invalid parameter(s): page, per_page","data":{"status":400,"params":{"page":"page is not of type integer.","per_page":"` + perPage + `"},`,
		"latest?search=x":                              `"params":{"search":"search is no parameter of a feed: it takes page, per_page,`,
		"latest?limit=3":                               `"params":{"limit":"limit is no parameter of a feed: it takes page, per_page,`,
		"latest?page=1&page=2":                         `"params":{"page":"page is there 2 times, it may be there once"}`,
		"latest?cursor=AAAA":                           `{"code":"rest_invalid_param","message":"cursor is damaged: send it as the last page gave it, or none to begin again","data":{"status":400}}`,
		"latest?cursor=AAAA&order=asc":                 `"params":{"order":"order is not desc, and a cursor has this order alone."}`,
		"latest?format=wordpress&userToken=%24":        `{"code":"rest_invalid_param","message":"UserToken must contain only`,
		"latest?_fields=" + strings.Repeat("a.", 3000): `"code":"rest_too_long"`,
		"latest?a%22%0a=1":                             `"params":{"a\"\n":"a\"\n is no parameter`,
	} {
		w, _ := get(t, h, "/1/feeds/blog/"+query)
		if w.Code != 400 && w.Code != 401 || !strings.Contains(w.Body.String(), want) || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %d\n got %s\nwant %s", query, w.Code, w.Body, want)
		}
	}
	many := "latest?"
	for i := range 1000 {
		many += fmt.Sprintf("p%d=1&", i)
	}
	if w, _ := get(t, h, "/1/feeds/blog/"+many); w.Code != 400 || w.Body.Len() > 10_000 {
		t.Errorf("1,000 unknown parameters: %d, %d bytes", w.Code, w.Body.Len())
	}
	for key, want := range map[string]string{
		"":          `401 {"code":"rest_not_logged_in","message":"Invalid credentials: `,
		"addObject": `403 {"code":"rest_forbidden","message":"Method not allowed with this API key`,
	} {
		if status, answer := functiontest.Call(h, key, "GET", "/1/feeds/blog/latest?format=wordpress", ""); !strings.HasPrefix(fmt.Sprint(status, " ", answer), want) {
			t.Errorf("the key %q: %d %s", key, status, answer)
		}
	}
	if status, answer := functiontest.Call(h, "search", "GET", "/1/feeds/none/latest?format=wordpress", ""); status != 404 || answer != `{"code":"rest_no_route","message":"Feed none does not exist","data":{"status":404}}` {
		t.Errorf("a feed that does not exist: %d %s", status, answer)
	}
	// The other formats have no options of WordPress.
	if status, answer := functiontest.Call(h, "search", "GET", "/1/feeds/blog/latest?format=ids&page=2", ""); status != 422 || !strings.Contains(answer, `Unknown query option \"page\": this route takes userToken, limit, cursor, format`) {
		t.Errorf("the format ids: %d %s", status, answer)
	}
}

// A person's page is in no cache.
func TestPostsOfAPersonAreNotCached(t *testing.T) {
	h := site(t)
	for _, query := range []string{"", "?page=9", "?format=ids", "?page=x"} {
		w, _ := get(t, h, "/1/feeds/blog/suggested"+query)
		vary := strings.Join(w.Header().Values("Vary"), ", ")
		if w.Header().Get("Cache-Control") != "private, no-store" || !strings.Contains(vary, "Cookie") || !strings.Contains(vary, "Origin") || !strings.Contains(vary, "X-Algolia-Api-Key") {
			t.Errorf("%s: %d %v", query, w.Code, w.Header())
		}
	}
}
