package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/affinityengine/affinity/shared/local/stack"
)

// fakeAlgolia answers as the published reference of Algolia's Search and Personalization
// APIs says, read on 2026-11-23: https://www.algolia.com/doc/rest-api/search/browse,
// /doc/rest-api/search/get-settings and /doc/rest-api/personalization. No test has
// compared it with Algolia.
type fakeAlgolia struct {
	*httptest.Server

	mu       sync.Mutex
	objects  []string
	strategy string
	settings string
	profiles map[string]string
	fails    func(body string) bool // a page of objects
	writes   int                    // requests that would change something
}

const (
	fakeStrategy = `{"eventsScoring":[{"eventName":"Product Viewed","eventType":"view","score":10},{"eventName":"Product Purchased","eventType":"conversion","score":50}],` +
		`"facetsScoring":[{"facetName":"brand","score":100},{"facetName":"color","score":50}],"personalizationImpact":40}`
	fakeSettings = `{"minWordSizefor1Typo":4,"hitsPerPage":20,"attributesForFaceting":["searchable(brand)","filterOnly(color)"],"ranking":["typo","geo"],"unretrievableAttributes":null}`
)

func newFakeAlgolia(t *testing.T, objects int) *fakeAlgolia {
	t.Helper()
	f := &fakeAlgolia{strategy: fakeStrategy, settings: fakeSettings, profiles: map[string]string{}}
	for i := range objects {
		f.objects = append(f.objects, fmt.Sprintf(`{"brand":"b%d","color":"Red","objectID":"%d"}`, i%7, i))
	}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	t.Setenv("ALGOLIA_APPLICATION_ID", "ALGOLIAAPP")
	t.Setenv("ALGOLIA_API_KEY", "algolia-key")
	t.Setenv("ALGOLIA_URL", f.URL)
	return f
}

func (f *fakeAlgolia) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := func(status int, body string) {
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // an error means that the client went away
	}
	user, ofUser := strings.CutPrefix(r.URL.Path, "/1/profiles/personalization/")
	switch {
	case r.Header.Get("X-Algolia-Application-Id") != "ALGOLIAAPP" || r.Header.Get("X-Algolia-API-Key") != "algolia-key":
		answer(http.StatusForbidden, `{"message":"Invalid Application-ID or API key","status":403}`)
	case r.Method == http.MethodGet && r.URL.Path == "/1/strategies/personalization":
		answer(http.StatusOK, f.strategy)
	case r.Method == http.MethodGet && ofUser && f.profiles[user] != "":
		answer(http.StatusOK, `{"userToken":"`+user+`","lastEventAt":"2026-11-20T23:32:17.582Z","scores":`+f.profiles[user]+`}`)
	case r.Method == http.MethodGet && ofUser:
		answer(http.StatusNotFound, `{"message":"Not Found","status":404}`)
	case r.Method == http.MethodGet && r.URL.Path == "/1/indexes/products/settings":
		answer(http.StatusOK, f.settings)
	case r.Method == http.MethodPost && r.URL.Path == "/1/indexes/products/browse":
		f.browse(r, answer)
	case r.Method == http.MethodGet:
		answer(http.StatusNotFound, `{"message":"Index does not exist","status":404}`)
	default:
		f.writes++
		answer(http.StatusMethodNotAllowed, `{"message":"this test changes nothing at Algolia","status":405}`)
	}
}

// browse answers a page. The cursor of this fake is the number of the next object.
func (f *fakeAlgolia) browse(r *http.Request, answer func(int, string)) {
	body, _ := io.ReadAll(r.Body) // a body that breaks off is not JSON
	var request struct {
		Cursor      string `json:"cursor"`
		HitsPerPage int    `json:"hitsPerPage"`
	}
	if json.Unmarshal(body, &request) != nil {
		answer(http.StatusBadRequest, `{"message":"Invalid JSON","status":400}`)
		return
	}
	if f.fails != nil && f.fails(string(body)) {
		answer(http.StatusBadRequest, `{"message":"Cursor is not valid anymore","status":400}`)
		return
	}
	from, _ := strconv.Atoi(strings.TrimPrefix(request.Cursor, "AE=="))
	size := request.HitsPerPage
	if size == 0 {
		size = 1000
	}
	to := min(from+size, len(f.objects))
	page := fmt.Sprintf(`{"hits":[%s],"page":0,"nbHits":%d,"nbPages":1,"hitsPerPage":%d,"processingTimeMS":1,"query":"","params":"","exhaustiveNbHits":true`,
		strings.Join(f.objects[from:to], ",\n"), len(f.objects), size)
	if to < len(f.objects) {
		page += fmt.Sprintf(`,"cursor":"AE==%d"`, to)
	}
	answer(http.StatusOK, page+"}")
}

func TestMigrate(t *testing.T) {
	engine, fake := startEngine(t, stack.Options{}), newFakeAlgolia(t, 2_345)
	args := []string{"migrate", "algolia", "--url", engine.URL, "--index", "products"}
	affinity(t, "", append(args, "--dry-run")...).wants(t, 0, "would set the strategy: 2 events, 2 facets, personalizationImpact 40",
		"would set attributesForFaceting of products: searchable(brand), filterOnly(color)", "would store 2345 objects of products")
	if r := affinity(t, "", "strategy", "get", "--url", engine.URL); !strings.Contains(r.out, `"eventsScoring": []`) {
		t.Errorf("a dry run has set a strategy: %s", r.out)
	}
	affinity(t, "", args...).wants(t, 0, "set the strategy", "set attributesForFaceting of products", "products: stored 2345 objects")
	affinity(t, "", "strategy", "get", "--url", engine.URL).wants(t, 0, `"eventName": "Product Purchased"`, `"personalizationImpact": 40`)
	affinity(t, "", args...).wants(t, 0, "the engine has Algolia's strategy", "products has Algolia's attributesForFaceting", "products: stored 2345 objects")
	for _, id := range []string{"0", "999", "1000", "2344"} {
		if code, answer := get(t, engine.URL+"/1/indexes/products/"+id); code != http.StatusOK || !strings.Contains(answer, `"color":"Red"`) {
			t.Errorf("object %s: %d %s", id, code, answer)
		}
	}
	if fake.writes > 0 {
		t.Errorf("%d requests would have changed something at Algolia", fake.writes)
	}
}

// get asks the engine as its app.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	r.Header.Set("X-Algolia-Application-Id", "demo")
	r.Header.Set("X-Algolia-API-Key", "demokey")
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	must(t, err)
	return answer.StatusCode, string(body)
}

// What the app of the engine has stays, unless --overwrite is given.
func TestMigrateKeepsWhatIsThere(t *testing.T) {
	engine, fake := startEngine(t, stack.Options{}), newFakeAlgolia(t, 1)
	args := []string{"migrate", "algolia", "--url", engine.URL, "--index", "products"}
	affinity(t, "", args...).wants(t, 0)
	fake.strategy = strings.Replace(fakeStrategy, "50", "60", 1)
	fake.settings = `{"attributesForFaceting":["size"]}`
	affinity(t, "", args...).wants(t, 0, "the engine has another strategy, which stays", "products has other attributesForFaceting, which stay")
	affinity(t, "", "index", "show", "products", "--url", engine.URL).wants(t, 0, "searchable(brand)")
	affinity(t, "", append(args, "--overwrite")...).wants(t, 0, "set the strategy", "set attributesForFaceting of products: size")
	affinity(t, "", "index", "show", "products", "--url", engine.URL).wants(t, 0, "size")
	fake.strategy, fake.settings = `{"eventsScoring":[],"facetsScoring":[],"personalizationImpact":0}`, `{"attributesForFaceting":null}`
	affinity(t, "", append(args, "--overwrite")...).wants(t, 0, "Algolia has no strategy", "products has no attributesForFaceting at Algolia")
}

// A run that fails among the objects says how to go on.
func TestMigrateGoesOn(t *testing.T) {
	engine, fake := startEngine(t, stack.Options{}), newFakeAlgolia(t, 2_001)
	fake.fails = func(body string) bool { return strings.Contains(body, "AE==2000") }
	args := []string{"migrate", "algolia", "--url", engine.URL, "--index", "products"}
	affinity(t, "", args...).wants(t, 1, "Cursor is not valid anymore", "what came before is stored: go on with --cursor 'AE==2000'")
	fake.fails = func(body string) bool { return !strings.Contains(body, "AE==2000") }
	affinity(t, "", append(args, "--cursor", "AE==2000")...).wants(t, 0, "products: stored 1 object\n")
}

func TestMigrateOfAFile(t *testing.T) {
	engine := startEngine(t, stack.Options{})
	newFakeAlgolia(t, 0)
	objects := file(t, "products.ndjson", `{"objectID":"1","color":"Red"}`, `{"color":"Red"}`)
	args := []string{"migrate", "algolia", "--url", engine.URL, "--index", "products", "--objects", objects}
	affinity(t, "", append(args, "--dry-run")...).wants(t, 0, "would store the objects of "+objects+" in products")
	affinity(t, "", args...).wants(t, 3, "products.ndjson:2: objectID is missing", "products: stored 1 object\n", "the engine refused some objects")
}

func TestMigrateUsage(t *testing.T) {
	newFakeAlgolia(t, 0)
	for want, args := range map[string][]string{
		"--index is required":                 {"algolia"},
		"--objects is a file of one index":    {"algolia", "--index", "a", "--index", "b", "--objects", "x"},
		"--cursor is a place in one index":    {"algolia", "--index", "a", "--objects", "x", "--cursor", "c"},
		`--region "de": must be us or eu`:     {"algolia", "--index", "a", "--region", "de"},
		"http would send the key unencrypted": {"algolia", "--index", "a", "--algolia-url", "http://algolia.example"},
		"USER is missing":                     {"compare"},
		`"a b" is not a user token`:           {"compare", "a b"},
		"--sample -1: must be 0 or more":      {"compare", "a", "--sample", "-1"},
	} {
		affinity(t, "", append([]string{"migrate"}, args...)...).wants(t, 2, want)
	}
	t.Setenv("ALGOLIA_API_KEY", "")
	affinity(t, "", "migrate", "algolia", "--index", "a").wants(t, 2, "the key of the Algolia application is missing: set $ALGOLIA_API_KEY or --algolia-key-file")
	key := file(t, "key", "wrong")
	affinity(t, "", "migrate", "algolia", "--index", "a", "--algolia-key-file", key).wants(t, 1, "Invalid Application-ID or API key")
	t.Setenv("ALGOLIA_APPLICATION_ID", "")
	affinity(t, "", "migrate", "algolia", "--index", "a").wants(t, 2, "--algolia-app is required")
}

func TestMigrateCompare(t *testing.T) {
	engine, fake := startEngine(t, stack.Options{}), newFakeAlgolia(t, 0)
	affinity(t, "", "migrate", "algolia", "--url", engine.URL, "--index", "products").wants(t, 0)
	view := `{"eventType":"view","eventName":"Product Viewed","index":"products","userToken":"%s","filters":[%s]}`
	events := file(t, "events.ndjson",
		fmt.Sprintf(view, "ann", `"brand:Acme"`), fmt.Sprintf(view, "ann", `"brand:Acme"`), fmt.Sprintf(view, "ann", `"brand:Zenith"`),
		fmt.Sprintf(view, "bob", `"brand:Acme"`), fmt.Sprintf(view, "new", `"brand:Acme"`))
	affinity(t, "", "import", "--url", engine.URL, events).wants(t, 0)
	fake.profiles = map[string]string{
		"ann": `{"brand":{"Acme":20,"Zenith":10}}`,
		"bob": `{"brand":{"Nova":20},"color":{"Red":2}}`,
		"old": `{"brand":{"Acme":20}}`,
	}
	users := file(t, "users", "ann", "bob", "", "new", "old", "nobody", "ann")
	affinity(t, "", "migrate", "compare", "--url", engine.URL, "--users", users).wants(t, 0,
		"ann     2        0        0    1.00   the same: brand:Acme\n", "bob     0        2        1    -0.82  brand:Nova -> brand:Acme\n",
		"new     unknown to Algolia\n", "old     unknown to the engine\n", "nobody  unknown to both\n",
		"5 users: 2 in both, 1 unknown to the engine, 1 unknown to Algolia\n",
		"of those in both: the first value is the same for 1, the mean order is 0.09, 2 of Algolia's 4 values are in the engine's profiles\n")
	affinity(t, "", "migrate", "compare", "--url", engine.URL, "--json", "bob").wants(t, 0, `"missing": [`, `"brand:Nova"`, `"new": [`)
	if r := affinity(t, "", "migrate", "compare", "--url", engine.URL, "--users", users, "--sample", "2"); !strings.Contains(r.out, "2 users") {
		t.Errorf("a sample of 2: %s", r.out)
	}
}
