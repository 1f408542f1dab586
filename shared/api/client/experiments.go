package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/affinityengine/affinity/shared/api"
)

func experimentPath(name string) string { return "/1/experiments/" + url.PathEscape(name) }

// Set begins or changes an experiment. Requires a key with the permission settings, as for all of experiments.
func (c Experiments) Set(ctx context.Context, name string, request api.SetExperiment) (api.Experiment, error) {
	return c.experiment(ctx, http.MethodPut, experimentPath(name), request)
}

// Get returns an experiment. If it does not exist, the error is an *api.Error with status 404.
func (c Experiments) Get(ctx context.Context, name string) (api.Experiment, error) {
	return c.experiment(ctx, http.MethodGet, experimentPath(name), nil)
}

// List returns the newest 100 experiments of an app.
func (c Experiments) List(ctx context.Context) (api.Experiments, error) {
	var answer api.Experiments
	err := c.call(ctx, always, http.MethodGet, "/1/experiments", nil, &answer)
	return answer, err
}

// Stop ends an experiment. One that has ended stays as it is.
func (c Experiments) Stop(ctx context.Context, name string) (api.Experiment, error) {
	return c.experiment(ctx, http.MethodPost, experimentPath(name)+"/stop", nil)
}

// Promote makes the strategy of an arm the active one, and ends the experiment.
func (c Experiments) Promote(ctx context.Context, name, arm string) (api.Experiment, error) {
	return c.experiment(ctx, http.MethodPost, experimentPath(name)+"/promote", api.PromoteRequest{Arm: arm})
}

// experiment sends a request that may be sent again: it leads to the same state.
func (c Experiments) experiment(ctx context.Context, method, path string, body any) (answer api.Experiment, err error) {
	err = c.call(ctx, always, method, path, body, &answer)
	return answer, err
}
