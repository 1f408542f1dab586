package worker

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// register registers the task routes of a runner's jobs.
func (h handler) register(rt *httpapi.Router, runner *job.Runner) {
	rt.Handle("POST "+runner.PlanPath(), func(w http.ResponseWriter, r *http.Request) error {
		return run(h, w, r, runner.Name+" plan", job.DecodePlan, runner.Plan)
	})
	rt.Handle("POST "+runner.ShardPath(), func(w http.ResponseWriter, r *http.Request) error {
		return run(h, w, r, runner.Name+" shard", job.DecodeShard, runner.Shard)
	})
}

// run runs the task of a request. what names the task in errors.
func run[T any](h handler, w http.ResponseWriter, r *http.Request, what string, decode func([]byte) (T, error),
	do func(context.Context, T, int) (job.Outcome, error)) error {
	body, err := httpapi.ReadBody(w, r, maxBody)
	if err != nil {
		return err
	}
	task, err := decode(body)
	if err != nil {
		return h.drop(w, r, err)
	}
	outcome, err := do(r.Context(), task, retries(r))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return httpapi.WriteJSON(w, http.StatusOK, outcome)
}

// retries is the number of earlier attempts of the task of a request. It is 0
// for a caller other than Cloud Tasks, which sends no such header.
func retries(r *http.Request) int {
	n, _ := strconv.Atoi(r.Header.Get("X-CloudTasks-TaskRetryCount"))
	return max(0, n)
}
