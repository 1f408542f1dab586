package rank

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/catalog/where"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/recommend"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/serve/ranker"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// algoliaModels are the models that Algolia's clients ask for.
var algoliaModels = map[string]recommend.Model{
	"related-products": recommend.Related, "bought-together": recommend.Together, "trending-items": recommend.Trending,
	"recommended-for-you": recommend.ForYou, trendingFacets: recommend.Trending,
}

// trendingFacets is the model that answers values of a facet in place of objects.
const trendingFacets = "trending-facets"

// ignoredParameters are parameters of Algolia's search that change no list.
var ignoredParameters = []string{"analytics", "analyticsTags", "clickAnalytics", "enableABTest",
	"enablePersonalization"}

// hits is a request for a list in Algolia's form.
type hits struct {
	ranker.Recommendation
	threshold float64 // of a hit's score, 0 to 100
	most      int     // hits
	fill      bool    // with popular objects where the model brings in too few
	fields    mask    // of records; nil: all
	facet     string  // whose values to answer, in place of objects; "": objects
}

// recommendHits answers lists in the form of Algolia's clients: records with scores.
func (h handler) recommendHits(w http.ResponseWriter, r *http.Request) error {
	began := time.Now()
	app, grant, body, err := h.admit(w, r, api.MaxRecommendBody)
	if err != nil {
		return err
	}
	asked, err := decodeHits(body)
	if err != nil {
		return err
	}
	for _, one := range asked {
		if _, err := allowed(app, grant, one.Request, ""); err != nil {
			return err
		}
	}
	b := []byte(`{"results":[`)
	for i, one := range asked {
		if i > 0 {
			b = append(b, ',')
		}
		h.Usage.Reads(app.ID, 1)
		n := 0
		b = append(b, `{"hits":[`...)
		if one.facet != "" {
			b, n, err = h.appendValues(b, r, app, one)
		} else {
			b, n, err = h.appendHits(b, r, app, one)
		}
		if err != nil {
			return err
		}
		b = append(b, `],"index":`...)
		b = append(b, quoted(one.Index)...)
		b = fmt.Appendf(b, `,"nbHits":%d,"page":0,"nbPages":1,"hitsPerPage":%d,"query":"","params":"","queryID":"%s",`+
			`"processingTimeMS":%d}`, n, one.most, newID(), time.Since(began).Milliseconds())
	}
	return httpapi.WriteEncoded(w, http.StatusOK, append(b, `]}`...))
}

// appendValues appends the values of a facet that rise, and returns their number.
func (h handler) appendValues(b []byte, r *http.Request, app config.App, q hits) ([]byte, int, error) {
	values, err := h.Orderer.RisingValues(r.Context(), app, q.Recommendation, q.facet)
	if err != nil {
		return nil, 0, fmt.Errorf("values that rise: %w", err)
	}
	n := 0
	for _, v := range values[:min(q.most, len(values))] {
		score := math.Round(10_000*v.Score) / 100
		if score < q.threshold {
			break
		}
		if n++; n > 1 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"_score":%s,"facetName":%s,"facetValue":%s}`, strconv.FormatFloat(score, 'f', -1, 64),
			quoted(q.facet), quoted(v.Value))
	}
	return b, n, nil
}

// appendHits appends the records that a request asks for, and returns their number.
func (h handler) appendHits(b []byte, r *http.Request, app config.App, q hits) ([]byte, int, error) {
	answer, err := h.Orderer.Recommend(r.Context(), app, q.Recommendation)
	if err != nil {
		return nil, 0, fmt.Errorf("recommend: %w", err)
	}
	scores, ids := map[string]float64{}, []string(nil)
	for i, item := range answer.Items {
		scores[item.ObjectID] = math.Round(10_000*answer.Strengths[i]) / 100
		linked := q.Model != recommend.ForYou
		filled := linked && slices.Contains([]string{recommend.Popular, recommend.Catalog}, answer.Sources[i])
		weak := linked && scores[item.ObjectID] < q.threshold
		if len(ids) < q.most && (filled && q.fill || !filled && !weak) {
			ids = append(ids, item.ObjectID)
		}
	}
	records, err := h.Orderer.Records(r.Context(), app.ID, q.Index, ids)
	if err != nil {
		return nil, 0, err
	}
	size := 0
	for _, record := range records {
		size += len(record)
	}
	if err := admission.Take(r.Context(), feedWeight*int64(size)); err != nil {
		return nil, 0, err
	}
	n := 0
	for _, id := range ids {
		record, there := records[id]
		if !there || len(record) < 2 {
			continue // it was deleted
		}
		if n++; n > 1 {
			b = append(b, ',')
		}
		from := len(b)
		b = appendSelected(b, record, q.fields)
		if q.Model != recommend.ForYou {
			b = slices.Insert(b, from+1, []byte(`"_score":`+strconv.FormatFloat(scores[id], 'f', -1, 64)+`,`)...)
		}
	}
	return b, n, nil
}

// decodeHits reads a body. Its errors are those of decode.
func decodeHits(body []byte) ([]hits, error) {
	var in api.AlgoliaRecommends
	switch err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true)); {
	case errors.Is(err, json.ErrUnknownName):
		return nil, invalid("Unknown key: a request takes indexName, model, objectID, facetName, facetValue, threshold, " +
			"maxRecommendations, queryParameters and fallbackParameters")
	case err != nil:
		return nil, malformed(
			`want {"requests":[{"indexName":"...","model":"related-products","objectID":"...","threshold":0}]}`)
	case len(in.Requests) == 0 || len(in.Requests) > api.MaxAlgoliaRecommends:
		return nil, invalid("requests must hold 1 to %d requests, got %d", api.MaxAlgoliaRecommends, len(in.Requests))
	}
	all := make([]hits, len(in.Requests))
	for i, one := range in.Requests {
		var err error
		if all[i], err = hitsOf(one, fmt.Sprintf("requests[%d].", i)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// hitsOf checks a request. at is where it stands.
func hitsOf(in api.AlgoliaRecommend, at string) (hits, error) {
	q := hits{threshold: in.Threshold, most: in.MaxRecommendations, fill: in.FallbackParameters != nil}
	q.Model, q.Index, q.Surface = algoliaModels[in.Model], in.IndexName, consent.Recommend
	switch {
	case q.Model == "":
		return q, invalid("%smodel must be related-products, bought-together, trending-items, trending-facets or "+
			"recommended-for-you, got %s",
			at, quote(in.Model))
	case !catalog.ValidIndex(in.IndexName):
		return q, invalid("%sindexName must have 1 to %d bytes", at, api.MaxIndex)
	case q.Model.OfObjects() && (in.ObjectID == "" || len(in.ObjectID) > catalog.MaxObjectID):
		return q, invalid("%sobjectID must have 1 to %d bytes, got %d", at, catalog.MaxObjectID, len(in.ObjectID))
	case !(in.Threshold >= 0 && in.Threshold <= 100):
		return q, invalid("%sthreshold must be from 0 to 100", at)
	case in.MaxRecommendations < 0 || in.MaxRecommendations > api.MaxRecommended:
		return q, invalid("%smaxRecommendations must be from 0 to %d", at, api.MaxRecommended)
	case in.Model == trendingFacets && (in.FacetName == "" || in.FacetValue != ""):
		return q, invalid("%sfacetName must name the facet whose values trend, without a facetValue", at)
	case in.Model == trendingFacets:
		q.facet, in.FacetName = in.FacetName, ""
	case (in.FacetName == "") != (in.FacetValue == "") || in.FacetName != "" && q.Model != recommend.Trending:
		return q, invalid("%sfacetName and facetValue belong together, and to the model trending-items", at)
	}
	if q.Model.OfObjects() {
		q.ObjectIDs = []string{in.ObjectID}
	}
	if q.most == 0 {
		q.most = api.MaxAlgoliaRecommend
	}
	if q.Limit = q.most; q.threshold > 0 {
		q.Limit = api.MaxRecommended // what is weaker may stand before
	}
	filters, err := q.parameters(in.QueryParameters, at+"queryParameters.")
	if err != nil {
		return q, err
	}
	if in.FacetName != "" {
		of := strconv.Quote(in.FacetName) + ":" + strconv.Quote(in.FacetValue)
		if filters != "" {
			of += " AND (" + filters + ")"
		}
		filters = of
	}
	if q.Where, err = where.Parse(filters); err != nil {
		return q, invalid("%squeryParameters.filters: %v", at, err)
	}
	return q, nil
}

// parameters reads parameters of Algolia's search, and returns the filters.
func (q *hits) parameters(given map[string]stdjson.RawMessage, at string) (filters string, err error) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value, wrong := given[name], ""
		switch name {
		case "filters":
			if json.Unmarshal(value, &filters) != nil {
				wrong = "filters must be a text"
			}
		case "userToken":
			if json.Unmarshal(value, &q.User) != nil || !event.ValidUserToken(q.User) {
				wrong = "userToken must be a user token"
			}
		case "attributesToRetrieve":
			var names []string
			if json.Unmarshal(value, &names) != nil || len(value) > maxSelection {
				wrong = fmt.Sprintf("attributesToRetrieve must be a list of names of at most %d bytes", maxSelection)
			} else if !slices.Contains(names, "*") {
				q.fields = newMask(append(names, "objectID"))
			}
		default:
			if !slices.Contains(ignoredParameters, name) {
				return "", invalid("%s%s is not supported: filters, userToken and attributesToRetrieve are", at, short(name))
			}
		}
		if wrong != "" {
			return "", invalid("%s%s", at, wrong)
		}
	}
	return filters, nil
}
