// Package strategies is the public function by which a customer reads, tries and
// sets the strategy of his app. Strategies and their versions live in Firestore. A
// new one is in force at once for reads, and starts a recompute of what is stored.
package strategies

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/httpapi"
	"github.com/affinityengine/affinity/shared/strategy"
)

type handler struct{ Backends }

// New is the function over its backends.
func New(b Backends) http.Handler {
	h := handler{b}
	rt := b.Router()
	rt.Handle("GET /1/strategies/personalization", h.get)
	rt.Handle("POST /1/strategies/personalization", h.set)
	rt.Handle("POST /1/strategies/personalization/preview", h.preview)
	return rt
}

// get reads past the cache: who has just set a strategy must see it.
func (h handler) get(w http.ResponseWriter, r *http.Request) error {
	app, err := h.Auth.Tenant(r, auth.Recommendation)
	if err != nil {
		return err
	}
	if app, err = h.Config.App(r.Context(), app.ID); err != nil {
		return fmt.Errorf("read strategy: %w", err)
	}
	return httpapi.WriteJSON(w, http.StatusOK, app.Strategy)
}

func (h handler) set(w http.ResponseWriter, r *http.Request) error {
	app, err := h.Auth.Tenant(r, auth.Recommendation)
	if err != nil {
		return err
	}
	body, err := httpapi.ReadBody(w, r, api.MaxStrategyBody)
	if err != nil {
		return err
	}
	wanted, err := strategy.Decode(body)
	if err != nil {
		return err
	}
	version, changed, err := h.CachedConfig.SetStrategy(r.Context(), app.ID, wanted)
	if err != nil {
		return fmt.Errorf("set strategy: %w", err)
	}
	h.Log.LogAttrs(r.Context(), slog.LevelInfo, "strategy set",
		slog.String("app", app.ID), slog.Int64("version", version), slog.Bool("changed", changed))
	// Also where nothing changed: who set it before may not have come this far.
	if _, err := h.Recompute.StartStrategy(r.Context(), app.ID); err != nil {
		return fmt.Errorf("strategy is set, but not its recompute started: %w", err)
	}
	return httpapi.WriteMessage(w, http.StatusOK, "Strategy was successfully updated.")
}
