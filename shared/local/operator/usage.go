package operator

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

const (
	topPath      = "/local/usage/top"
	lastUsedPath = "/local/usage/keys"
)

// topRequest asks for what all apps used in the last days, today included.
type topRequest struct {
	Days int `json:"days"`
}

// handleUsage adds the operations on usage to a router. now is the engine's clock.
func handleUsage(rt *httpapi.Router, apps Store, reader usage.Reader, now func() time.Time) {
	handle(rt, lastUsedPath, func(ctx context.Context, r request) (any, error) {
		if !config.ValidAppID(r.App.ID) {
			return nil, config.ErrNotFound
		}
		return reader.LastUsed(ctx, r.App.ID)
	})
	rt.Handle("POST "+topPath, func(w http.ResponseWriter, r *http.Request) error {
		body, err := httpapi.ReadBody(w, r, maxRequest)
		if err != nil {
			return err
		}
		var in topRequest
		if err := json.Unmarshal(body, &in); err != nil || in.Days < 1 || in.Days > usage.Keep {
			return httpapi.Errorf(http.StatusBadRequest, "Bad Request: days must be 1 to %d", usage.Keep)
		}
		ids, err := apps.Apps(r.Context())
		if err != nil {
			return err
		}
		today := usage.DayOf(now())
		top, err := usage.Top(r.Context(), reader, ids, today-usage.Day(in.Days)+1, today)
		if err != nil {
			return err
		}
		return httpapi.WriteJSON(w, http.StatusOK, top)
	})
}

// Top returns what each app used in the last days, today included, by app.
func (c *Client) Top(ctx context.Context, days int) ([]usage.AppUse, error) {
	body, err := json.Marshal(topRequest{days})
	if err != nil {
		return nil, err
	}
	var answer []usage.AppUse
	err = c.call(ctx, http.MethodPost, topPath, body, &answer)
	return answer, err
}

// LastUsed returns the last day on which each key of an app was used, by the key's
// hash.
func (c *Client) LastUsed(ctx context.Context, appID string) (map[string]usage.Day, error) {
	return post[map[string]usage.Day](ctx, c, lastUsedPath, request{App: config.App{ID: appID}})
}
