package client

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/affinityengine/affinity/shared/api"
)

const strategyPath = "/1/strategies/personalization"

// Strategy returns the active strategy. The key needs the right recommendation.
func (c *Client) Strategy(ctx context.Context) (api.Strategy, error) {
	var answer api.Strategy
	err := c.call(ctx, always, http.MethodGet, strategyPath, nil, &answer)
	return answer, err
}

// SetStrategy replaces the strategy. It applies to every read that begins 5 s
// later or after. The key needs the right recommendation.
func (c *Client) SetStrategy(ctx context.Context, s api.Strategy) error {
	return c.call(ctx, always, http.MethodPost, strategyPath, s, nil)
}

// SetStrategyJSON is SetStrategy for an encoded strategy, such as that of a
// file. The engine checks it.
func (c *Client) SetStrategyJSON(ctx context.Context, strategy json.RawMessage) error {
	return c.callRaw(ctx, always, http.MethodPost, strategyPath, strategy, nil)
}

// PreviewStrategy reports what a strategy would change, and changes nothing.
// The key needs the right recommendation.
func (c *Client) PreviewStrategy(ctx context.Context, request api.PreviewRequest) (api.Preview, error) {
	var answer api.Preview
	err := c.call(ctx, always, http.MethodPost, strategyPath+"/preview", request, &answer)
	return answer, err
}
