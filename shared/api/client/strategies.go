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

// Strategy returns the active strategy. Requires a key with the permission recommendation.
func (c *Client) Strategy(ctx context.Context) (api.Strategy, error) {
	var answer api.Strategy
	err := c.call(ctx, always, http.MethodGet, strategyPath, nil, &answer)
	return answer, err
}

// SetStrategy replaces the strategy. It applies to every read that begins 5 s
// later or after. Requires a key with the permission recommendation.
func (c *Client) SetStrategy(ctx context.Context, s api.Strategy) error {
	return c.call(ctx, always, http.MethodPost, strategyPath, s, nil)
}

// SetStrategyJSON is SetStrategy for an encoded strategy, such as that of a
// file. The engine checks it.
func (c *Client) SetStrategyJSON(ctx context.Context, strategy json.RawMessage) error {
	return c.callRaw(ctx, always, http.MethodPost, strategyPath, strategy, nil)
}

// SetNotedStrategyJSON is SetStrategyJSON with a note that is kept with the version. ""
// is none.
func (c *Client) SetNotedStrategyJSON(ctx context.Context, strategy json.RawMessage, note string) error {
	return c.setStrategyJSON(ctx, strategy, note, url.Values{})
}

// SetStrategyIf is SetNotedStrategyJSON for a strategy that may replace one version
// alone: ifVersion, 0 if none was ever set. If another is active, nothing changes and
// the error is an *api.Error with status 409.
func (c *Client) SetStrategyIf(ctx context.Context, strategy json.RawMessage, note string, ifVersion int64) error {
	return c.setStrategyJSON(ctx, strategy, note, url.Values{"ifVersion": {strconv.FormatInt(ifVersion, 10)}})
}

func (c *Client) setStrategyJSON(ctx context.Context, strategy json.RawMessage, note string, query url.Values) error {
	if note != "" {
		query.Set("note", note)
	}
	return c.callRaw(ctx, always, http.MethodPost, withQuery(strategyPath, query), strategy, nil)
}

// PreviewStrategy reports what a strategy would change, and changes nothing.
// Requires a key with the permission recommendation.
func (c *Client) PreviewStrategy(ctx context.Context, request api.PreviewRequest) (api.Preview, error) {
	var answer api.Preview
	err := c.call(ctx, always, http.MethodPost, strategyPath+"/preview", request, &answer)
	return answer, err
}

// StrategyVersion returns the strategy with that version. If it never existed or
// is no longer kept, the error is an *api.Error with status 404. The key needs
// the permission recommendation.
func (c *Client) StrategyVersion(ctx context.Context, version int64) (api.Strategy, error) {
	var answer api.Strategy
	query := url.Values{"version": {strconv.FormatInt(version, 10)}}
	err := c.call(ctx, always, http.MethodGet, withQuery(strategyPath, query), nil, &answer)
	return answer, err
}

// StrategyVersions lists the kept versions of the strategy, the newest first. The
// key needs the permission recommendation.
func (c *Client) StrategyVersions(ctx context.Context) (api.StrategyVersions, error) {
	var answer api.StrategyVersions
	err := c.call(ctx, always, http.MethodGet, strategyPath+"/versions", nil, &answer)
	return answer, err
}

// RestoreStrategy sets the strategy of an earlier version again, as a new
// version. Requires a key with the permission recommendation.
func (c *Client) RestoreStrategy(ctx context.Context, version int64) error {
	return c.restoreStrategy(ctx, api.RestoreStrategyRequest{Version: version})
}

// RestoreStrategyIf is RestoreStrategy for a version that may replace one other alone,
// as in SetStrategyIf.
func (c *Client) RestoreStrategyIf(ctx context.Context, version, ifVersion int64) error {
	return c.restoreStrategy(ctx, api.RestoreStrategyRequest{Version: version, IfVersion: &ifVersion})
}

func (c *Client) restoreStrategy(ctx context.Context, request api.RestoreStrategyRequest) error {
	return c.call(ctx, always, http.MethodPost, strategyPath+"/restore", request, nil)
}
