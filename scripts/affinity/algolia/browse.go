// Package algolia reads what an Algolia application has and the engine's own client does
// not read: the objects of an index. It also compares profiles. Algolia's APIs for
// strategies, settings and profiles are those that the engine speaks, so shared/api/client
// reads them from either.
//
// It keeps nothing: package transfer writes what it reads to an engine.
package algolia

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/affinityengine/affinity/shared/api/client"
)

// Page is an answer of POST /1/indexes/{indexName}/browse:
// https://www.algolia.com/doc/rest-api/search/browse.
type Page struct {
	Hits []json.RawMessage `json:"hits"`
	// Cursor leads to the next page. The last page has none.
	Cursor string `json:"cursor"`
	Count  int    `json:"nbHits"` // of all pages
}

// maxHits is how many objects a page has at most.
const maxHits = 1000

// Browse reads a page: the first one without a cursor. one asks for one object, to know
// how many there are.
func Browse(ctx context.Context, search *client.Client, index, cursor string, one bool) (Page, error) {
	request := map[string]any{"hitsPerPage": maxHits}
	if one {
		request["hitsPerPage"] = 1
	}
	if cursor != "" {
		request = map[string]any{"cursor": cursor}
	}
	body, err := json.Marshal(request)
	if err != nil {
		return Page{}, err
	}
	answer, err := search.DoAgain(ctx, http.MethodPost, "/1/indexes/"+url.PathEscape(index)+"/browse", body)
	if err != nil {
		return Page{}, err
	}
	var p Page
	if err := json.Unmarshal(answer, &p); err != nil {
		return Page{}, fmt.Errorf("the answer is not a page of objects: %w", err)
	}
	return p, nil
}

// Lines are the objects of the page, one a line.
func (p Page) Lines() []byte {
	var all bytes.Buffer
	for _, hit := range p.Hits {
		if json.Compact(&all, hit) == nil { // a page was decoded, so its objects are JSON
			all.WriteByte('\n')
		}
	}
	return all.Bytes()
}
