package console

import (
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/web/auth"
)

const experimentsPath = "/console/strategy/experiments"

func init() {
	const section, path, template = "strategy", experimentsPath, "experiments"
	pages = append(pages,
		page{pattern: "GET " + path, section: section, template: template, load: loadExperiments},
		page{pattern: "POST " + path + "/{name}/stop", section: section, template: template, load: stopExperiment},
		page{pattern: "POST " + path + "/{name}/promote", section: section, template: template, load: promoteArm},
	)
	notices["experiment-stopped"] = "The experiment has ended. Every read uses the active strategy within five seconds."
	notices["experiment-promoted"] = "The strategy of the arm is the active one, and the experiment has ended."
}

// experimentsPage lists the experiments of the app, and what they have shown.
type experimentsPage struct {
	Now     time.Time
	List    []api.Experiment
	Reports []reportView
}

func loadExperiments(v *visit) (any, error) {
	v.title, v.command = "Experiments", "affinity experiment list"
	all, err := v.engine.Experiments().List(v.Context())
	if err != nil {
		return nil, err
	}
	reports, err := readReports(v, all.Experiments)
	return &experimentsPage{Now: v.now(), List: all.Experiments, Reports: reports}, err
}

func stopExperiment(v *visit) (any, error) {
	if _, err := v.engine.Experiments().Stop(v.Context(), v.PathValue("name")); err != nil {
		return nil, err
	}
	return nil, done(experimentsPath, "experiment-stopped")
}

func promoteArm(v *visit) (any, error) {
	_, err := v.engine.Experiments().Promote(v.Context(), v.PathValue("name"), v.PostForm.Get("arm"))
	if err != nil {
		return nil, err
	}
	return nil, done(experimentsPath, "experiment-promoted")
}

// readExperiment returns the experiment that has not ended; nil: there is none, or the key may not see it.
func readExperiment(v *visit) (*api.Experiment, error) {
	if !v.may(auth.Settings) {
		return nil, nil
	}
	all, err := v.engine.Experiments().List(v.Context())
	i := slices.IndexFunc(all.Experiments, func(e api.Experiment) bool { return e.State != api.ExperimentEnded })
	if err != nil || i < 0 {
		return nil, err
	}
	return &all.Experiments[i], nil
}
