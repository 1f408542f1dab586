package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/command/admin"
	"github.com/affinityengine/affinity/scripts/affinity/contexts"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/operator"
)

// applied returns a folder with a state of Terraform that has the output cli, as outputs.tf
// writes it.
func applied(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("terraform"); err != nil {
		t.Skipf("terraform is not installed: %v", err)
	}
	t.Setenv("CHECKPOINT_DISABLE", "1")
	folder := t.TempDir()
	state := `{"version": 4, "terraform_version": "1.9.0", "serial": 1, "lineage": "b6a1ad3e-9a43-4ecb-a6cf-9f4fdb0bd7f1", "resources": [],
		"outputs": {"cli": {"value": {"url": "https://api.example.com", "project": "my-project", "database": "affinity", "keys_database": "affinity-keys", "instance": "affinity-2",
			"app_profile": "batch-2", "regions": "", "queue": "projects/my-project/locations/europe-west1/queues/worker", "kms_key": null},
			"type": ["object", {"url": "string", "project": "string", "database": "string", "keys_database": "string", "instance": "string", "app_profile": "string",
			"regions": "string", "queue": "string", "kms_key": "string"}]}}}`
	must(t, os.WriteFile(filepath.Join(folder, "terraform.tfstate"), []byte(state), 0o600))
	return folder
}

// Commands of operators work on the deployment of the context, and on no other.
func TestDeploymentOfContext(t *testing.T) {
	keyring.MockInit()
	for _, variable := range []string{command.URLVariable, command.AppVariable, command.KeyVariable, command.KeyFileVariable,
		operator.Variable, "GOOGLE_CLOUD_PROJECT", "FIRESTORE_EMULATOR_HOST"} {
		t.Setenv(variable, "")
	}
	folder, state := filepath.Join(t.TempDir(), "affinity"), applied(t)
	store := config.NewMemory()
	var opened string
	run := func(line string) ran {
		return affinityWith(t, t.Context(), "", func(tl *program) {
			tl.Contexts = contexts.New(folder)
			tl.open.Config = func(_ context.Context, d admin.Databases) (admin.ConfigStore, error) {
				opened = d.Project + " " + d.Configuration + " " + d.Keys
				return admin.ConfigStore{Store: store, Close: func() error { return nil }}, nil
			}
			tl.open.Log = func(_ context.Context, b admin.Bigtables) (admin.ChangeLog, error) {
				opened += " " + b.Project + " " + b.Instance + " " + b.Profile
				return &memoryLog{}, nil
			}
		}, strings.Fields(line)...)
	}
	const contextHelp = "affinity context add prod --from-terraform terraform"
	// Without a context nothing stands for a flag that was forgotten.
	run("app list").wants(t, cli.ExitUsage, "give --project", contextHelp)
	run("app list --project p").wants(t, cli.ExitUsage, "give --database, --keys-database and --instance of the deployment in project p", contextHelp)
	run("app create shop --project p --database affinity --keys-database k").wants(t, cli.ExitUsage, "give --instance of the deployment")
	run("app raise-tickets shop --project p").wants(t, cli.ExitUsage, "give --instance of the deployment")
	t.Setenv("GOOGLE_CLOUD_PROJECT", "another")
	run("app list").wants(t, cli.ExitUsage, "in project another")
	if opened != "" {
		t.Errorf("refused commands opened %s", opened)
	}

	run("context add prod --from-terraform "+state).wants(t, cli.ExitOK, "context prod is the deployment in project my-project: "+
		"Firestore database affinity, Bigtable instance affinity-2, https://api.example.com\n")
	run("context list").wants(t, cli.ExitOK, "*  prod", "my-project/affinity-2")
	run("context list --json").wants(t, cli.ExitOK, `"instance": "affinity-2"`)
	run("app retention shop 30").wants(t, cli.ExitFailed, "no such app",
		"on the deployment of context prod: project my-project, Firestore database affinity, Bigtable instance affinity-2\n")
	must(t, store.CreateApp(t.Context(), config.App{ID: "shop", RetentionDays: 90}))
	for line, want := range map[string]string{
		"app retention shop 30":                                                         "my-project affinity affinity-keys my-project affinity-2 batch-2",
		"app retention shop 30 --instance affinity-3":                                   "my-project affinity affinity-keys my-project affinity-3 batch-2",
		"app retention shop 30 --project p --database d --keys-database k --instance i": "p d k p i batch",
		"app retention shop 30 --context prod":                                          "my-project affinity affinity-keys my-project affinity-2 batch-2",
		"app retention shop 30 --context prod --app-profile x --database other":         "my-project other affinity-keys my-project affinity-2 x",
	} {
		if run(line); opened != want {
			t.Errorf("%s opened %q, want %q", line, opened, want)
		}
	}
	run("app list --context prod --project p").wants(t, cli.ExitUsage, "--context and --project cannot both be given")
	// The key of an app may lie beside it, and no key is invented.
	run("events refused").wants(t, cli.ExitUsage, "--app")
	run("context add prod --app shop --from-terraform "+state).wants(t, cli.ExitUsage, "give --key-file or --key with --app shop")
	run("context add prod --app shop --key k --from-terraform "+state).wants(t, cli.ExitOK)
	run("context list").wants(t, cli.ExitOK, "shop", "keyring")
	run("context add other --from-terraform "+t.TempDir()).wants(t, cli.ExitFailed, "apply there first")
	run("context delete prod").wants(t, cli.ExitOK)
}
