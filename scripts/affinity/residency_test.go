package main

import (
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/local/stack"
)

func residesNow(t *testing.T, apps *config.Store, id string) {
	t.Helper()
	for _, mode := range []config.ResidencyMode{config.ResidencyPrepare, config.ResidencyOn} {
		_, err := apps.SetResidency(t.Context(), id, config.Residency{Mode: mode, Home: "eu", Regions: []string{"eu", "us"}}, 0)
		must(t, err)
	}
}

// The commands move one user, and all users of a region, which the app no longer names in the end.
func TestResidencyCommands(t *testing.T) {
	s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond, Regions: []string{"eu", "us"}})
	app := onLocal(t, s)
	user := func(line string) ran { return affinity(t, "", strings.Fields("user region "+line+" --url "+s.URL)...) }
	residesNow(t, s.Backends.Config, "demo")
	s.Backends.Residents.SetSettle(0)
	affinity(t, "", "events", "send", "ann", "--name", "Seen", "--filter", "color:Red", "--url", s.URL).wants(t, cli.ExitOK)
	must(t, s.Idle(t.Context()))
	user("ann --to us").wants(t, cli.ExitOK, "us")
	user("ann --to mars").wants(t, cli.ExitFailed, "mars")
	app("residency demo --leave us=mars").wants(t, cli.ExitFailed, `users cannot leave "us" for "mars"`)
	app("residency demo --leave us=eu").wants(t, cli.ExitOK, "users leave us for eu")
	for strings.Contains(app("residency demo").out, "us for eu") {
		<-time.After(10 * time.Millisecond)
	}
	app("residency demo").wants(t, cli.ExitOK, "users live in eu\n")
	user("ann").wants(t, cli.ExitOK, "eu")
}

// On a deployed engine the command gives the job to the worker's queue, after the setting is stored.
func TestResidencyDeployed(t *testing.T) {
	t.Parallel()
	apps, jobs, created := config.NewMemory(), documents.NewMemory(), tasks{}
	app := onDeployedJobs(t, apps, jobs, &created)
	app("create shop").wants(t, cli.ExitOK)
	residesNow(t, apps, "shop")
	const regions = ` --regions [{"name":"eu","instance":"affinity","location":"europe-west1"},{"name":"us","instance":"affinity-us","location":"us-central1"}]`
	app("residency shop --leave us=eu"+regions).wants(t, cli.ExitUsage, "--queue is required")
	app("residency shop --leave us=asia --queue q"+regions).wants(t, cli.ExitFailed, `users cannot leave "us" for "asia"`)
	if a, err := apps.App(t.Context(), "shop"); err != nil || len(a.Residency.Leave) > 0 || len(created) > 0 {
		t.Fatalf("refused commands have set %s and created %v (%v)", a.Residency, created, err)
	}
	app("residency shop --leave us=eu --queue q"+regions).wants(t, cli.ExitOK, "users leave us for eu")
	if len(created) != 1 || created[0].Path != "/residents/plan" || created[0].Delay < 5*time.Second {
		t.Errorf("tasks %+v, want one that waits until every function knows", created)
	}
}
