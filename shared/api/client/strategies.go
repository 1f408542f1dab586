package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/affinityengine/affinity/shared/api"
)

const strategyPath = "/1/strategies/personalization"

// Get returns the active strategy. Requires a key with the permission recommendation.
func (c Strategies) Get(ctx context.Context) (api.Strategy, error) {
	var answer api.Strategy
	err := c.call(ctx, always, http.MethodGet, strategyPath, nil, &answer)
	return answer, err
}

// Set replaces the strategy. It applies to every read that begins 5 s
// later or after. Requires a key with the permission recommendation.
func (c Strategies) Set(ctx context.Context, s api.Strategy) error {
	return c.call(ctx, always, http.MethodPost, strategyPath, s, nil)
}

// SetOptions say more about a new strategy.
type SetOptions struct {
	Note string // kept with the version; "": none
	// If is the version that the strategy may replace, 0 if none was ever set. If another is
	// active, nothing changes and the error is an *api.Error with status 409. nil: any.
	If *int64
}

// SetJSON is Set for an encoded strategy, such as that of a file. The engine checks it. The
// answer is an api.Message, whose warnings a caller reads by WithRawAnswer.
func (c Strategies) SetJSON(ctx context.Context, strategy json.RawMessage, o SetOptions) error {
	query := url.Values{}
	if o.Note != "" {
		query.Set("note", o.Note)
	}
	if o.If != nil {
		query.Set("ifVersion", strconv.FormatInt(*o.If, 10))
	}
	return c.callRaw(ctx, always, http.MethodPost, withQuery(strategyPath, query), strategy, nil)
}

// Preview reports what a strategy would change, and changes nothing.
// Requires a key with the permission recommendation.
func (c Strategies) Preview(ctx context.Context, request api.PreviewRequest) (api.Preview, error) {
	var answer api.Preview
	err := c.call(ctx, always, http.MethodPost, strategyPath+"/preview", request, &answer)
	return answer, err
}

// Version returns the strategy with that version. If it never existed or
// is no longer kept, the error is an *api.Error with status 404. The key needs
// the permission recommendation.
func (c Strategies) Version(ctx context.Context, version int64) (api.Strategy, error) {
	var answer api.Strategy
	query := url.Values{"version": {strconv.FormatInt(version, 10)}}
	err := c.call(ctx, always, http.MethodGet, withQuery(strategyPath, query), nil, &answer)
	return answer, err
}

// Versions lists the kept versions of the strategy, the newest first. The
// key needs the permission recommendation.
func (c Strategies) Versions(ctx context.Context) (api.StrategyVersions, error) {
	var answer api.StrategyVersions
	err := c.call(ctx, always, http.MethodGet, strategyPath+"/versions", nil, &answer)
	return answer, err
}

// Suggestion returns a first strategy by what was seen in the last days, 1 to api.MaxSeenDays; 0 stands
// for as many. It sets nothing. Requires a key with the permission recommendation.
func (c Strategies) Suggestion(ctx context.Context, days int) (api.StrategySuggestion, error) {
	query := url.Values{}
	if days > 0 {
		query.Set("days", strconv.Itoa(days))
	}
	var answer api.StrategySuggestion
	err := c.call(ctx, always, http.MethodGet, withQuery("/1/strategies/personalization/suggestion", query), nil, &answer)
	return answer, err
}

// Restore sets the strategy of an earlier version again, as a new version. It may replace
// the version ifActive alone, as SetOptions.If says; nil: any. Requires a key with the
// permission recommendation.
func (c Strategies) Restore(ctx context.Context, version int64, ifActive *int64) error {
	return c.call(ctx, always, http.MethodPost, strategyPath+"/restore",
		api.RestoreStrategyRequest{Version: version, IfVersion: ifActive}, nil)
}
