package client

import (
	"context"
	"net/http"

	"github.com/affinityengine/affinity/shared/api"
)

// Rank orders the candidates of a request for its user. A user whom the engine
// does not know gets an order by popularity, and no error. The key needs the
// permission recommendation.
func (c *Client) Rank(ctx context.Context, request api.RankRequest) (api.RankAnswer, error) {
	var answer api.RankAnswer
	err := c.call(ctx, always, http.MethodPost, "/1/rank", request, &answer)
	return answer, err
}

// Recommend returns what a model recommends, in the order of the request's user, if it names
// one. The key needs the permission recommendation.
func (c *Client) Recommend(ctx context.Context, request api.RecommendRequest) (api.RecommendAnswer, error) {
	var answer api.RecommendAnswer
	err := c.call(ctx, always, http.MethodPost, "/1/recommend", request, &answer)
	return answer, err
}
