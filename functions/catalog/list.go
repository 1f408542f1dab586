package catalog

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// listQuery is what a request for a page of objects asks for.
type listQuery struct {
	filter event.Filter // zero: every object
	limit  int
	after  string // the objectID behind which the page begins
}

func readListQuery(r *http.Request) (listQuery, error) {
	var q listQuery
	var err error
	if q.limit, err = httpapi.CountOption(r, "limit", api.DefaultObjects, api.MaxObjects); err != nil {
		return q, err
	}
	values := r.URL.Query()
	if values.Has("filter") {
		if q.filter, err = event.ParseFilter(values.Get("filter")); err != nil {
			return q, httpapi.Errorf(http.StatusUnprocessableEntity, "filter must be a facet and a value, such as brand:Acme")
		}
	}
	if q.after = values.Get("cursor"); len(q.after) > catalog.MaxObjectID || !utf8.ValidString(q.after) {
		return q, httpapi.Errorf(http.StatusUnprocessableEntity, "cursor must be the cursor of another answer of this route")
	}
	return q, nil
}

// errPage ends a reading of objects.
var errPage = errors.New("the page is full")

// list answers a page of the objectIDs of an index. It reads a bounded number of objects,
// with the filter or without, so a page may be short, or empty, before the end.
func (h handler) list(w http.ResponseWriter, r *http.Request, grant auth.Grant, index string) error {
	q, err := readListQuery(r)
	if err != nil {
		return err
	}
	answer, read, err := h.page(r.Context(), grant.App, index, q)
	if err != nil {
		return fmt.Errorf("list objects: %w", err)
	}
	if err := h.Charge(r.Context(), grant.App, limit.Reads, read/api.ObjectsOfARead); err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

func (h handler) page(ctx context.Context, app, index string, q listQuery) (answer api.Objects, read int, err error) {
	answer.ObjectIDs = []string{}
	last := q.after
	take := func(id string, has bool) error {
		if len(answer.ObjectIDs) == q.limit || read == h.mostRead {
			answer.Cursor = last
			return errPage
		}
		read, last = read+1, id
		if has {
			answer.ObjectIDs = append(answer.ObjectIDs, id)
		}
		return nil
	}
	if q.filter == (event.Filter{}) {
		err = h.Store.Catalog.ScanObjectIDsAfter(ctx, app, index, q.after, func(id string) error { return take(id, true) })
	} else {
		err = h.Store.Catalog.ScanFiltersAfter(ctx, app, index, q.after, func(id string, f []event.Filter) error {
			return take(id, slices.Contains(f, q.filter))
		})
	}
	if errors.Is(err, errPage) {
		err = nil
	}
	return answer, read, err
}
