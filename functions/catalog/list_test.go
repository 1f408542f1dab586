package catalog_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/catalog"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
)

// Pages list each object once, in the order of the bytes of their ids, whatever the ids hold
// and however little a page may read.
func TestListObjects(t *testing.T) {
	s := functiontest.Start(t)
	var actions, all, red, blue []string
	for i, id := range []string{"a", "a,b", "a%2Cb", "A", "ä", "a\u0000", `"`, "<b>", "z/y?x#w", "z", strings.Repeat("z", 512)} {
		color := "Red"
		if i%3 == 1 {
			color, blue = "Blue: dark", append(blue, id)
		} else {
			red = append(red, id)
		}
		all = append(all, id)
		body, err := json.Marshal(map[string]string{"objectID": id, "color": color})
		must.Succeed(t, err)
		actions = append(actions, fmt.Sprintf(`{"action":"addObject","body":%s}`, body))
	}
	slices.Sort(all)
	slices.Sort(red)
	slices.Sort(blue)
	h := catalog.New(s.Backends.ForCatalog())
	for _, index := range []string{"shoes", "shoes,", "shoe"} { // neighbours in the table
		functiontest.Do(t, h, "all", "POST", "/1/indexes/"+url.PathEscape(index)+"/batch", `{"requests":[`+strings.Join(actions, ",")+`]}`)
	}
	list := func(h http.Handler, query url.Values) (ids []string, pages int) {
		t.Helper()
		for cursor := ""; ; pages++ {
			if cursor != "" {
				query.Set("cursor", cursor)
			}
			page := functiontest.Answer[api.Objects](t, h, "addObject", "GET", "/1/indexes/shoes?"+query.Encode(), "")
			if pages > 20 {
				t.Fatal(page, pages)
			}
			ids = append(ids, page.ObjectIDs...)
			if cursor = page.Cursor; cursor == "" {
				return ids, pages + 1
			}
		}
	}
	for _, c := range []struct {
		mostRead int
		query    string
		want     []string
		pages    int
	}{
		{100, "", all, 1}, {100, "limit=11", all, 1}, {100, "limit=10", all, 2}, {100, "limit=1", all, 11}, {4, "", all, 3},
		{100, "filter=color:Red", red, 1}, {4, "filter=color:Red", red, 3}, {1, "filter=color%3ARed&limit=2", red, 11},
		{100, "filter=color:Green", nil, 1}, {100, "filter=" + url.QueryEscape("color:Blue: dark"), blue, 1},
	} {
		query, err := url.ParseQuery(c.query)
		must.Succeed(t, err)
		got, pages := list(catalog.NewReading(s.Backends.ForCatalog(), c.mostRead), query)
		if !slices.Equal(got, c.want) || pages != c.pages {
			t.Errorf("%s, %d read: %q in %d pages, want %q in %d", c.query, c.mostRead, got, pages, c.want, c.pages)
		}
	}
	functiontest.Check(t, h,
		functiontest.Ask("search", "GET", "/1/indexes/shoes", "", 403, "Method not allowed with this API key"),
		functiontest.Ask("addObject", "GET", "/1/indexes/none", "", 200, `{"objectIDs":[]}`),
		functiontest.Ask("addObject", "GET", "/1/indexes/shoes?limit=0", "", 422, "limit must be an integer from 1 to 1000"),
		functiontest.Ask("addObject", "GET", "/1/indexes/shoes?limit=1001", "", 422, "limit must be an integer from 1 to 1000"),
		functiontest.Ask("addObject", "GET", "/1/indexes/shoes?filter=color", "", 422, "filter must be a facet and a value, such as brand:Acme"),
		functiontest.Ask("addObject", "GET", "/1/indexes/shoes?cursor=%FF", "", 422, "cursor must be the cursor of another answer of this route"),
		functiontest.Ask("addObject", "GET", "/1/indexes/shoes?cursor="+strings.Repeat("z", 513), "", 422, "cursor must be the cursor of another answer of this route"),
		functiontest.Ask("addObject", "GET", "/1/indexes/shoes?filters=color:Red", "", 422, "Unknown query option"),
	)
}
