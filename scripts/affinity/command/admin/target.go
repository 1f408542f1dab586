package admin

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/terraform"
)

// aim decides which deployed engine a command works on: that of --project with the other
// flags, that of the context, or the emulators. Nothing but emulators has a default, because a
// forgotten flag would write to what a restore has left behind.
func (a *appTool) aim(cmd *cobra.Command) error {
	if cmd.Flags().Changed("project") {
		a.Deployment = nil
	}
	if a.Deployment != nil {
		return a.aimAtContext(cmd)
	}
	emulator := os.Getenv("FIRESTORE_EMULATOR_HOST") != ""
	if a.databases.Project = cmp.Or(a.databases.Project, os.Getenv("GOOGLE_CLOUD_PROJECT")); a.databases.Project == "" && emulator {
		a.databases.Project = "affinity-local"
	}
	if a.databases.Project == "" {
		return cli.Usagef("for a deployed engine give --project, or add a context with `affinity context add prod "+
			"--from-terraform terraform`, or set GOOGLE_CLOUD_PROJECT or FIRESTORE_EMULATOR_HOST; "+
			"for an engine of `affinity up` set %s to the operator's token that it printed", operator.Variable)
	}
	if emulator {
		a.databases.Configuration = cmp.Or(a.databases.Configuration, terraform.Database)
		a.databases.Keys = cmp.Or(a.databases.Keys, terraform.KeysDatabase)
		a.bigtable.Instance = cmp.Or(a.bigtable.Instance, localInstance)
	}
	var lacks []string
	if a.databases.Configuration == "" {
		lacks = append(lacks, "--database")
	}
	if a.databases.Keys == "" {
		lacks = append(lacks, "--keys-database")
	}
	if a.bigtable.Instance == "" {
		lacks = append(lacks, "--instance")
	}
	if len(lacks) > 0 {
		return cli.Usagef("give %s of the deployment in project %s: it has no default, because a restore changes it; or "+
			"leave --project out and add a context with `affinity context add prod --from-terraform terraform`, which "+
			"knows all of them",
			cli.List(lacks), a.databases.Project)
	}
	a.bigtable.Project = a.databases.Project
	return nil
}

// localInstance is the name of the Bigtable instance that emulators have.
const localInstance = "affinity"

// aimAtContext takes from the deployment of the context what no flag gives.
func (a *appTool) aimAtContext(cmd *cobra.Command) error {
	d, changed := a.Deployment, cmd.Flags().Changed
	for _, from := range []struct {
		flag, value string
		to          *string
	}{
		{"database", d.Database, &a.databases.Configuration}, {"keys-database", d.KeysDatabase, &a.databases.Keys},
		{"instance", d.Instance, &a.bigtable.Instance},
		{"app-profile", d.AppProfile, &a.bigtable.Profile}, {"queue", d.Queue, &a.queue}, {"kms-key", d.KMSKey, &a.kmsKey},
	} {
		if !changed(from.flag) {
			*from.to = from.value
		}
	}
	if !changed("regions") && d.Regions != "" {
		if err := a.regions.UnmarshalText([]byte(d.Regions)); err != nil {
			return fmt.Errorf("the regions of context %s: %w", a.Context, err)
		}
	}
	a.databases.Project, a.bigtable.Project = d.Project, d.Project
	fmt.Fprintf(a.Err, "on the deployment of context %s: project %s, Firestore database %s, Bigtable instance %s\n",
		cli.Printable(a.Context), a.databases.Project, a.databases.Configuration, a.bigtable.Instance)
	return nil
}
