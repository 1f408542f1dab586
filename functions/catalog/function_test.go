package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/catalog"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/queue"
)

func TestCatalog(t *testing.T) {
	s := functiontest.Start(t)
	const (
		batch  = "/1/indexes/shoes/batch"
		add    = `{"requests":[{"action":"addObject","body":{"objectID":"1","color":"Red"}}]}`
		remove = `{"requests":[{"action":"deleteObject","objectID":"1"}]}`
	)
	functiontest.Check(t, catalog.New(s.Backends.ForCatalog()),
		functiontest.Ask("", "POST", batch, add, 401, "Invalid credentials"),
		functiontest.Ask("search", "POST", batch, add, 403, "Method not allowed with this API key"),
		functiontest.Ask("deleteObject", "POST", batch, add, 403, ""),
		functiontest.Ask("addObject", "POST", batch, remove, 403, ""),
		functiontest.Ask("addObject", "GET", batch+"/more/still", "", 404, "Path not supported"),
		functiontest.Ask("addObject", "PUT", batch, add, 405, `"Method Not Allowed"`),
		functiontest.Ask("search", "POST", "/1/indexes/shoes/query", `{"query":"boots"}`, 405, "Method Not Allowed: Affinity is no search engine: ask yours, and order its results with POST /1/rank"),
		functiontest.Ask("search", "POST", "/1/indexes/*/queries", `{}`, 405, "Affinity is no search engine"),
		functiontest.Ask("search", "POST", "/1/indexes/shoes/facets/color/query", `{}`, 404, "Affinity is no search engine"),
		functiontest.Ask("addObject", "POST", "/1/indexes/"+strings.Repeat("i", api.MaxIndex+1)+"/batch", add, 422, "The index name must have 1 to 512 bytes"),
		functiontest.Ask("addObject", "POST", batch, `{`, 400, "the body is not valid JSON"),
		functiontest.Ask("addObject", "POST", batch, `{"requests":[{"action":"addObject"}]}`, 422, "requests[0]: body is missing"),
		functiontest.Ask("addObject", "GET", "/1/indexes/shoes/1", "", 404, "ObjectID does not exist"),
		functiontest.Ask("addObject", "POST", batch, add, 200, `{"objectIDs":["1"],"taskID":`),
		functiontest.Ask("addObject", "GET", "/1/indexes/shoes/1", "", 200, `{"objectID":"1","color":"Red"}`),
		functiontest.Ask("addObject", "POST", batch, `{"requests":[{"action":"partialUpdateObject","body":{"objectID":"1","size":"L"}}]}`, 200, ""),
		functiontest.Ask("addObject", "GET", "/1/indexes/shoes/1", "", 200, `{"objectID":"1","color":"Red","size":"L"}`),
		functiontest.Ask("settings", "GET", "/1/indexes/shoes/task/7", "", 200, `{"pendingTask":false,"status":"published"}`),
		functiontest.Ask("settings", "GET", "/1/indexes/shoes/settings", "", 200, `{}`),
		functiontest.Ask("settings", "PUT", "/1/indexes/shoes/settings", `{"attributesForFaceting":[1]}`, 422, "attributesForFaceting must be a list of strings"),
		functiontest.Ask("settings", "PUT", "/1/indexes/shoes/settings", `{"attributesForFaceting":["color"]}`, 200, `"updatedAt":`),
		functiontest.Ask("settings", "GET", "/1/indexes/shoes/settings", "", 200, `{"attributesForFaceting":["color"]}`),
		functiontest.Ask("settings", "PUT", "/1/indexes/shoes/settings", `{"privateFacets":"gender"}`, 422, "privateFacets must be a list of strings"),
		functiontest.Ask("settings", "PUT", "/1/indexes/shoes/settings", `{"privateFacets":["gender"]}`, 200, `"updatedAt":`),
		functiontest.Ask("settings", "GET", "/1/indexes/shoes/settings", "", 200, `{"attributesForFaceting":["color"],"privateFacets":["gender"]}`),
		functiontest.Ask("settings", "PUT", "/1/indexes/shoes/settings", `{"attributesForFaceting":["color","size"]}`, 200, `"updatedAt":`),
		functiontest.Ask("settings", "GET", "/1/indexes/shoes/settings", "", 200, `"privateFacets":["gender"]`),
		functiontest.Ask("settings", "GET", "/1/indexes/boots/settings", "", 200, `{}`),
		functiontest.Ask("settings", "PUT", "/1/indexes/shoes/settings", `{"privateFacets":[]}`, 200, `"updatedAt":`),
		functiontest.Ask("settings", "GET", "/1/indexes/shoes/settings", "", 200, `{"attributesForFaceting":["color","size"]}`),
		functiontest.Ask("addObject", "POST", batch, `{"requests":[{"action":"addObject","body":{"objectID":"2","color":"`+strings.Repeat("R", 1001)+`","size":"L","note":"`+strings.Repeat("n", 1001)+`"}}]}`,
			200, `"dropped":{"color":1}}`),
		functiontest.Ask("addObject", "DELETE", "/1/indexes/shoes/1", "", 403, ""),
		functiontest.Ask("deleteObject", "DELETE", "/1/indexes/shoes/1", "", 200, `{"deletedAt":"`),
		functiontest.Ask("addObject", "GET", "/1/indexes/shoes/1", "", 404, "ObjectID does not exist"),
		functiontest.Ask("deleteObject", "POST", batch, `{"requests":[{"action":"clear"}]}`, 200, `{"objectIDs":[],"taskID":`),
	)
}

// A batch whose partial updates build on more records than may be in memory changes
// what it would change at once, and nothing if it is refused.
// tasks keeps the tasks that are created, or fails.
type tasks struct {
	created []queue.Task
	err     error
}

func (q *tasks) Create(_ context.Context, t queue.Task) error {
	if q.err == nil {
		q.created = append(q.created, t)
	}
	return q.err
}

// One task a minute follows the objects that are stored in an index, also if the queue takes it
// only at the second attempt. None follows deletions.
func TestLoadsAreFollowed(t *testing.T) {
	s, q := functiontest.Start(t), &tasks{}
	b := s.Backends.ForCatalog()
	now := time.UnixMilli(1_600_000_020_000)
	b.Queue, b.Now = q, func() time.Time { return now }
	h := catalog.New(b)
	send := func(index, action string, want ...string) {
		t.Helper()
		key := "addObject"
		if action == "deleteObject" {
			key = action
		}
		body := `{"requests":[{"action":"` + action + `","objectID":"1","body":{"objectID":"1"}}]}`
		functiontest.Do(t, h, key, "POST", "/1/indexes/"+index+"/batch", body)
		var got []string
		for _, t := range q.created {
			got = append(got, t.Path+" "+string(t.Body))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s in %s: tasks %q, want %q", action, index, got, want)
		}
	}
	shoes, hats := `/imported {"app":"shop","index":"shoes"}`, `/imported {"app":"shop","index":"hats"}`
	send("shoes", "deleteObject")
	q.err = errors.New("the queue fails")
	send("shoes", "addObject")
	q.err = nil
	send("shoes", "addObject", shoes)
	send("shoes", "partialUpdateObject", shoes)
	send("hats", "addObject", shoes, hats)
	now = now.Add(time.Minute)
	send("shoes", "addObject", shoes, hats, shoes)
}

func TestPartialUpdatesInGroups(t *testing.T) {
	s := functiontest.Start(t)
	const objects = 30
	atOnce, grouped := catalog.New(s.Backends.ForCatalog()), catalog.NewGrouped(s.Backends.ForCatalog(), 400)
	send := func(h http.Handler, index string, actions []string, want int, message string) {
		t.Helper()
		body := `{"requests":[` + strings.Join(actions, ",") + `]}`
		status, answer := functiontest.Call(h, "all", "POST", "/1/indexes/"+index+"/batch", body)
		if status != want || !strings.Contains(answer, message) {
			t.Fatalf("%s: %d %s, want %d %s", index, status, answer, want, message)
		}
	}
	same := func() {
		t.Helper()
		for i := range objects {
			path := func(index string) string { return fmt.Sprintf("/1/indexes/%s/%d", index, i) }
			_, want := functiontest.Call(atOnce, "all", "GET", path("whole"), "")
			if _, got := functiontest.Call(atOnce, "all", "GET", path("parts"), ""); got != want {
				t.Fatalf("object %d in groups: %s\nat once: %s", i, got, want)
			}
		}
	}
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 6 {
		var actions []string
		for range 80 {
			if rnd.IntN(100) == 0 {
				actions = append(actions, `{"action":"clear"}`)
				continue
			}
			kind := []string{"addObject", "partialUpdateObject", "partialUpdateObject", "partialUpdateObject", "partialUpdateObjectNoCreate", "deleteObject"}[rnd.IntN(6)]
			actions = append(actions, fmt.Sprintf(`{"action":%q,"body":{"objectID":"%d","a%d":%q}}`,
				kind, rnd.IntN(objects), rnd.IntN(4), strings.Repeat("x", rnd.IntN(120))))
		}
		send(atOnce, "whole", actions, 200, "taskID")
		send(grouped, "parts", actions, 200, "taskID")
		same()
	}
	var refused []string
	for i := range objects {
		refused = append(refused, fmt.Sprintf(`{"action":"partialUpdateObject","body":{"objectID":"%d","new":"%d"}}`, i, i))
	}
	half := strings.Repeat("y", api.MaxRecord/2)
	refused = append(refused, `{"action":"partialUpdateObject","body":{"objectID":"9","b1":"`+half+`"}}`, `{"action":"addObject","body":{"objectID":"new"}}`,
		`{"action":"partialUpdateObject","body":{"objectID":"9","b2":"`+half+`"}}`)
	send(grouped, "parts", refused, 413, "requests[32]: the record has")
	same()
}
