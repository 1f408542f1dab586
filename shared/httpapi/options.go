package httpapi

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// HandleOwn adds a route of the engine's own, which Algolia's API does not have.
// options are the names of all its query options: a request with another one is
// refused, because an option that is ignored changes the meaning of an answer
// unseen. Names that begin with x-algolia- carry credentials and the names of
// clients on every route, so they pass.
func (rt *Router) HandleOwn(pattern string, h Handler, options ...string) {
	takes := "none"
	if len(options) > 0 {
		takes = strings.Join(options, ", ")
	}
	rt.Handle(pattern, func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.RawQuery == "" {
			return h(w, r)
		}
		for _, name := range slices.Sorted(maps.Keys(r.URL.Query())) {
			if !slices.Contains(options, name) && !strings.HasPrefix(strings.ToLower(name), "x-algolia-") {
				return Errorf(http.StatusUnprocessableEntity, "Unknown query option %.100q: this route takes %s", name, takes)
			}
		}
		return h(w, r)
	})
}
