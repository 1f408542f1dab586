package terraform_test

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// everywhere are the roles that an account may have on the whole project: none of them reads
// what the engine or another bucket of the project keeps.
var everywhere = []string{
	"roles/logging.logWriter",
	"roles/bigquery.jobUser", // reads no table
	"roles/telemetry.tracesWriter",
}

var (
	projectGrant = regexp.MustCompile(`(?ms)^resource "(google_project_iam_\w+)" "(\w+)" \{$(.*?)^\}$`)
	roleInGrant  = regexp.MustCompile(`"(roles/[\w.]+)"`)
	condition    = regexp.MustCompile(`(?m)^  (dynamic "condition"|condition) \{$`)
)

// TestRolesOnTheProject finds roles that an account has on everything that the project holds,
// such as the buckets of the archive and of Terraform's state.
func TestRolesOnTheProject(t *testing.T) {
	found := map[string]bool{}
	for path, text := range configuration(t) {
		if strings.Count(text, `resource "google_project_iam_`) != len(projectGrant.FindAllString(text, -1)) {
			t.Errorf("%s has a grant on the project in a form that this test does not read", path)
		}
		for _, grant := range projectGrant.FindAllStringSubmatch(text, -1) {
			if grant[1] == "google_project_iam_custom_role" || grant[1] == "google_project_iam_audit_config" {
				continue // they grant nothing
			}
			roles := roleInGrant.FindAllStringSubmatch(grant[3], -1)
			if len(roles) == 0 || grant[1] != "google_project_iam_member" {
				t.Errorf("%s: %s.%s: want a google_project_iam_member that names its roles", path, grant[1], grant[2])
			}
			for _, role := range roles {
				found[role[1]] = true
				whole := !condition.MatchString(grant[3])
				if whole && !slices.Contains(everywhere, role[1]) {
					t.Errorf("%s: %s.%s grants %s on the whole project: give it a condition that names what it is for, or grant it there",
						path, grant[1], grant[2], role[1])
				}
			}
		}
	}
	for _, role := range append(everywhere, "roles/datastore.user") {
		if !found[role] {
			t.Errorf("no account has %s: take it out of this test", role)
		}
	}
}

// configuration returns the texts of all files of the configuration, by their paths.
func configuration(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".terraform" || path == "single") { // single is another root
			return fs.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(path, ".tf") {
			text, err := os.ReadFile(path)
			texts[path] = string(text)
			return err
		}
		return nil
	})
	if err != nil || len(texts) < 20 {
		t.Fatalf("read %d files: %v", len(texts), err)
	}
	return texts
}
