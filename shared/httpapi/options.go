package httpapi

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// RefuseOptions refuses a request that has query options, on a route that takes
// none. Names that begin with x-algolia- carry credentials and the names of
// clients on every route, so they pass. hint, if there is one, ends the message:
// what to do instead.
func RefuseOptions(r *http.Request, hint string) error {
	for _, name := range slices.Sorted(maps.Keys(r.URL.Query())) {
		if strings.HasPrefix(strings.ToLower(name), "x-algolia-") {
			continue
		}
		if hint != "" {
			hint = ": " + hint
		}
		return Errorf(http.StatusUnprocessableEntity, "Unknown query option %.100q%s", name, hint)
	}
	return nil
}
