package catalog_test

import (
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/catalog"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/functiontest"
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
		functiontest.Ask("addObject", "PUT", batch, add, 405, "Method Not Allowed"),
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
		functiontest.Ask("addObject", "DELETE", "/1/indexes/shoes/1", "", 403, ""),
		functiontest.Ask("deleteObject", "DELETE", "/1/indexes/shoes/1", "", 200, `{"deletedAt":"`),
		functiontest.Ask("addObject", "GET", "/1/indexes/shoes/1", "", 404, "ObjectID does not exist"),
		functiontest.Ask("deleteObject", "POST", batch, `{"requests":[{"action":"clear"}]}`, 200, `{"objectIDs":[],"taskID":`),
	)
}
