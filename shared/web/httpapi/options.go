package httpapi

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// HandleOwn adds a route of the engine's own, which Algolia's API does not have.
// options are the names of all its query options: a request with another one is
// refused, because an option that is ignored changes the meaning of an answer
// unseen. Names that begin with x-algolia- carry credentials and the names of
// clients on every route, so they pass.
func (rt *Router) HandleOwn(pattern string, h Handler, options ...string) {
	rt.Handle(pattern, func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.RawQuery == "" {
			return h(w, r)
		}
		if err := CheckOptions(r.URL.Query(), options...); err != nil {
			return err
		}
		return h(w, r)
	})
}

// CheckOptions refuses query options that HandleOwn would refuse, for a route whose options depend
// on the request.
func CheckOptions(query url.Values, options ...string) error {
	takes := "none"
	if len(options) > 0 {
		takes = strings.Join(options, ", ")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(options, name) && !strings.HasPrefix(strings.ToLower(name), "x-algolia-") {
			return Errorf(http.StatusUnprocessableEntity, "Unknown query option %.100q: this route takes %s", name, takes)
		}
	}
	return nil
}

// CountOption returns the query option of a request that says how many are asked for, from 1
// to most, or absent if the URL has none.
func CountOption(r *http.Request, name string, absent, most int) (int, error) {
	values, given := r.URL.Query()[name]
	if !given {
		return absent, nil
	}
	n, err := strconv.Atoi(values[0])
	if err != nil || n < 1 || n > most {
		return 0, Errorf(http.StatusUnprocessableEntity, "%s must be an integer from 1 to %d", name, most)
	}
	return n, nil
}

// BoolOption returns the query option of a request that is true or false, or false if the URL has
// none.
func BoolOption(r *http.Request, name string) (bool, error) {
	switch text := r.URL.Query().Get(name); text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, Errorf(http.StatusUnprocessableEntity, "%s must be true or false, got %q", name, text)
	}
}
