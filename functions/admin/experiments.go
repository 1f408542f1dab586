package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// registerExperiments registers the routes of experiments. What sets or promotes one decides which strategy users get,
// so it counts as a change of the strategy.
func (h handler) registerExperiments(rt *httpapi.Router) {
	rt.Count(limit.Strategies, "PUT /1/experiments/{name}", "POST /1/experiments/{name}/promote")
	rt.HandleOwn("GET /1/experiments", auth.Serve(h.Auth.AppID, h.listExperiments, auth.Settings))
	rt.HandleOwn("GET /1/experiments/{name}", auth.Serve(h.Auth.AppID, h.getExperiment, auth.Settings))
	rt.HandleOwn("PUT /1/experiments/{name}", auth.ServeBoth(h.Auth.TenantKey, h.setExperiment, auth.Settings))
	rt.HandleOwn("POST /1/experiments/{name}/stop", auth.ServeBoth(h.Auth.TenantKey, h.stopExperiment, auth.Settings))
	rt.HandleOwn("POST /1/experiments/{name}/promote", auth.ServeBoth(h.Auth.TenantKey, h.promoteArm, auth.Settings))
}

func (h handler) experiments() config.Experiments { return config.ExperimentsOf(h.CachedConfig) }

func (h handler) listExperiments(w http.ResponseWriter, r *http.Request, app string) error {
	all, err := h.experiments().All(r.Context(), app)
	if err != nil {
		return err
	}
	answer := api.Experiments{Experiments: make([]api.Experiment, len(all))}
	for i, e := range all {
		answer.Experiments[i] = renderExperiment(e, h.Now())
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

func (h handler) getExperiment(w http.ResponseWriter, r *http.Request, app string) error {
	e, err := h.experiments().Get(r.Context(), app, r.PathValue("name"))
	return h.answerExperiment(w, e, err)
}

func (h handler) setExperiment(w http.ResponseWriter, r *http.Request, app config.App, key string) error {
	in, err := httpapi.Decode(w, r, api.MaxExperimentBody, decodeExperiment)
	if err != nil {
		return err
	}
	in.Name = r.PathValue("name")
	err = h.changeExperiment(r, app, key, auditlog.ExperimentSet, func() (string, error) {
		if in, _, err = h.experiments().Set(r.Context(), app.ID, in, h.Now()); err != nil {
			return "", err
		}
		detail, err := json.Marshal(in)
		return string(detail), err
	})
	return h.answerExperiment(w, in, err)
}

func (h handler) stopExperiment(w http.ResponseWriter, r *http.Request, app config.App, key string) error {
	var stopped experiment.Experiment
	err := h.changeExperiment(r, app, key, auditlog.ExperimentStop, func() (detail string, err error) {
		changed := false
		stopped, changed, err = h.experiments().Stop(r.Context(), app.ID, r.PathValue("name"), h.Now())
		if !changed {
			detail = "unchanged: it has ended before"
		}
		return detail, err
	})
	return h.answerExperiment(w, stopped, err)
}

func (h handler) promoteArm(w http.ResponseWriter, r *http.Request, app config.App, key string) error {
	arm, err := httpapi.Decode(w, r, api.MaxExperimentBody, decodePromotion)
	if err != nil {
		return err
	}
	var promoted experiment.Experiment
	err = h.changeExperiment(r, app, key, auditlog.ExperimentPromote, func() (string, error) {
		var to config.App
		promoted, to, err = h.experiments().Promote(r.Context(), app.ID, r.PathValue("name"), arm, h.Now())
		return fmt.Sprintf("arm %s, strategy version %d", arm, to.StrategyVersion), err
	})
	return h.answerExperiment(w, promoted, err)
}

// changeExperiment records a change, which returns its detail.
func (h handler) changeExperiment(r *http.Request, app config.App, key string, action auditlog.Action,
	change func() (string, error)) error {
	c := auditlog.Change{App: app.ID, Actor: key, Action: action, Subject: r.PathValue("name")}
	return auditlog.New(h.AuditLog()).Do(r.Context(), c, func() (end auditlog.End, err error) {
		end.Detail, err = change()
		return end, err
	})
}

// answerExperiment answers an experiment, or why there is none.
func (h handler) answerExperiment(w http.ResponseWriter, e experiment.Experiment, err error) error {
	if errors.Is(err, config.ErrNotFound) {
		return httpapi.Errorf(http.StatusNotFound, "Experiment does not exist")
	}
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, renderExperiment(e, h.Now()))
}

// decodeExperiment reads an api.SetExperiment.
func decodeExperiment(body []byte) (e experiment.Experiment, err error) {
	var in *api.SetExperiment
	switch err := jsonv2.Unmarshal(body, &in, jsonv2.RejectUnknownMembers(true)); {
	case errors.Is(err, jsonv2.ErrUnknownName):
		return e, httpapi.Errorf(http.StatusUnprocessableEntity, "Unknown key: the body takes arms, each with name, "+
			"strategy and weight, coverage, seed, startAt, endAt, metric and hypothesis")
	case err != nil || in == nil:
		return e, httpapi.Errorf(http.StatusBadRequest,
			`Bad Request: want {"arms":[{"name":"control","strategy":1,"weight":0.5},...],"metric":"clicks"}`)
	}
	e = experiment.Experiment{Coverage: 1, Seed: in.Seed, Metric: in.Metric, Hypothesis: in.Hypothesis}
	for _, arm := range in.Arms {
		e.Arms = append(e.Arms, experiment.Arm(arm))
	}
	if in.Coverage != nil {
		e.Coverage = *in.Coverage
	}
	if in.StartAt != nil {
		e.StartAt = in.StartAt.Time
	}
	if in.EndAt != nil {
		e.EndAt = in.EndAt.Time
	}
	return e, nil
}

// decodePromotion reads {"arm":"..."}.
func decodePromotion(body []byte) (string, error) {
	var in *api.PromoteRequest
	if err := jsonv2.Unmarshal(body, &in, jsonv2.RejectUnknownMembers(true)); err != nil || in == nil || in.Arm == "" {
		return "", httpapi.Errorf(http.StatusBadRequest, `Bad Request: want {"arm":"..."}`)
	}
	return in.Arm, nil
}

func renderExperiment(e experiment.Experiment, now time.Time) api.Experiment {
	view := api.Experiment{
		Name: e.Name, State: api.ExperimentPlanned, Coverage: e.Coverage, Seed: e.Seed, StartAt: api.At(e.StartAt),
		Promoted: e.Promoted, Metric: e.Metric, Hypothesis: e.Hypothesis, Arms: make([]api.ExperimentArm, len(e.Arms)),
		EndAt: givenTime(e.EndAt), StoppedAt: givenTime(e.StoppedAt),
	}
	switch {
	case e.Ended(now):
		view.State = api.ExperimentEnded
	case e.Runs(now):
		view.State = api.ExperimentRunning
	}
	for i, arm := range e.Arms {
		view.Arms[i] = api.ExperimentArm(arm)
	}
	return view
}

// givenTime is nil for the zero time.
func givenTime(t time.Time) *api.Time {
	if t.IsZero() {
		return nil
	}
	at := api.At(t)
	return &at
}
