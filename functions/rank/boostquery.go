package rank

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/boost"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// boostOptions are the query options of a boost.
var boostOptions = []string{"engine", "mode", "impact", "limit", "halfLife", "fields", "fieldMap", "consistency"}

// userHeader names the user of a request. A token in it stays out of the logs of
// URLs.
const userHeader = "X-Algolia-Usertoken"

// boostedUser returns the user of a request: of its path, or of the header.
func boostedUser(r *http.Request) (string, error) {
	user := r.PathValue("userToken")
	for _, named := range r.Header.Values(userHeader) {
		if user != "" && user != named {
			return "", invalid("The path and the headers x-algolia-usertoken name different users")
		}
		user = named
	}
	switch {
	case user == "":
		return "", invalid("The user is required: in the path, /1/boosts/{userToken}, or in the header x-algolia-usertoken")
	case !event.ValidUserToken(user):
		return "", invalid("UserToken must contain only alphanumeric, equal, plus, slash, " +
			"hyphen, or underscore characters, and be between 1 and 129 characters long")
	}
	return user, nil
}

// boostQuery is what the options of a request ask for. Its Request lacks what
// depends on the user and the app.
type boostQuery struct {
	boost.Request
	impactGiven bool
	halfLife    strategy.HalfLife  // zero: the first
	consistency config.Consistency // "": the app's
}

// decodeBoost reads the options of a request. Every error is a *fault.Error of the
// kind Invalid. The engine, its modes and the mapping are left to package boost.
func decodeBoost(rawQuery string) (boostQuery, error) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return boostQuery{}, invalid("The query of the URL is malformed: percent-encode its values")
	}
	q := boostQuery{Request: boost.Request{Limit: api.DefaultBoostAffinities}}
	for _, name := range boostOptions {
		given := values[name]
		switch {
		case len(given) == 0 && name == "engine":
			return boostQuery{}, invalid("engine is required: one of %s", strings.Join(boost.Engines(), ", "))
		case len(given) == 0:
			continue
		case len(given) > 1:
			return boostQuery{}, invalid("%s is there %d times, it may be there once", name, len(given))
		case !utf8.ValidString(given[0]):
			return boostQuery{}, invalid("%s is not valid UTF-8", name)
		}
		if err := q.set(name, given[0]); err != nil {
			return boostQuery{}, err
		}
	}
	return q, nil
}

// set takes one option.
func (q *boostQuery) set(name, value string) (err error) {
	switch name {
	case "engine":
		q.Engine = value
	case "mode":
		if q.Mode = value; value == "" {
			err = invalid("mode of %s must be one of %s, got nothing", q.Engine, strings.Join(boost.Modes(q.Engine), ", "))
		}
	case "impact":
		q.impactGiven = true
		q.Impact, err = within(name, value, 0, strategy.MaxImpact)
	case "limit":
		q.Limit, err = within(name, value, 1, api.MaxBoostAffinities)
	case "halfLife":
		if q.halfLife, err = strategy.ParseHalfLife(value); err != nil {
			err = invalid("halfLife %v", err)
		}
	case "fields":
		q.Fields, err = fieldList(value)
	case "fieldMap":
		q.FieldMap, err = fieldMap(value)
	case "consistency":
		if q.consistency, err = config.ParseConsistency(value); err != nil {
			err = invalid("%v", err)
		}
	}
	return err
}

// within reads an integer.
func within(name, value string, low, high int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < low || n > high {
		return 0, invalid("%s must be an integer from %d to %d, got %s", name, low, high, quote(value))
	}
	return n, nil
}

// fieldList reads brand,color.
func fieldList(value string) ([]string, error) {
	fields := strings.Split(value, ",")
	if len(fields) > api.MaxBoostFields {
		return nil, invalid("fields names %d facets, at most %d are accepted", len(fields), api.MaxBoostFields)
	}
	known := make(map[string]bool, len(fields))
	for _, f := range fields {
		switch {
		case f == "":
			return nil, invalid("fields must be facets with a comma between them, such as brand,color: one is empty")
		case known[f]:
			return nil, invalid("fields names the facet %s twice", quote(f))
		}
		known[f] = true
	}
	return fields, nil
}

// fieldMap reads brand:brand.keyword,color:colour. A mapping ends the facet at its
// first colon.
func fieldMap(value string) (map[string]string, error) {
	entries := strings.Split(value, ",")
	if len(entries) > api.MaxBoostFields {
		return nil, invalid("fieldMap has %d entries, at most %d are accepted", len(entries), api.MaxBoostFields)
	}
	to := make(map[string]string, len(entries))
	for _, entry := range entries {
		facet, field, mapped := strings.Cut(entry, ":")
		_, twice := to[facet]
		switch {
		case facet == "":
			return nil, invalid("fieldMap must be facets with their fields, such as brand:brand.keyword,color:colour: " +
				"an entry names no facet")
		case !mapped || field == "":
			return nil, invalid("fieldMap has no field for the facet %s: write facet:field", quote(facet))
		case twice:
			return nil, invalid("fieldMap names the facet %s twice", quote(facet))
		case len(field) > api.MaxBoostField:
			return nil, invalid("fieldMap names a field of %d bytes for the facet %s, at most %d are accepted",
				len(field), quote(facet), api.MaxBoostField)
		}
		to[facet] = field
	}
	return to, nil
}
