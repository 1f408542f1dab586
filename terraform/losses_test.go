package terraform_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// lossProject is the state of a project whose bucket of sources exists and has no
// change: then a plan reads what earlier applies have written.
const lossProject = `{"version": 4, "terraform_version": "1.9.0", "serial": 1, "lineage": "b6a1ad3e-9a43-4ecb-a6cf-9f4fdb0bd7f1", "outputs": {}, "resources": [
  {"mode": "managed", "type": "google_storage_bucket", "name": "source", "provider": "provider[\"registry.terraform.io/hashicorp/google\"]", "instances": [
    {"schema_version": 4, "attributes": {
      "id": "affinity-test-affinity-source", "name": "affinity-test-affinity-source", "location": "EUROPE-WEST1", "project": "affinity-test",
      "deletion_policy": "DELETE", "force_destroy": true, "public_access_prevention": "enforced", "storage_class": "STANDARD", "uniform_bucket_level_access": true,
      "default_event_based_hold": false, "enable_object_retention": false, "requester_pays": false, "rpo": "DEFAULT", "labels": {},
      "effective_labels": {"app": "affinity", "environment": "prod", "goog-terraform-provisioned": "true"},
      "terraform_labels": {"app": "affinity", "environment": "prod", "goog-terraform-provisioned": "true"},
      "hierarchical_namespace": [{"enabled": false}], "soft_delete_policy": [{"retention_duration_seconds": 604800}], "versioning": [{"enabled": true}],
      "lifecycle_rule": [{"action": [{"type": "Delete", "storage_class": ""}], "condition": [{"days_since_noncurrent_time": 30, "with_state": "ANY"}]}]}}
  ]}
]}`

// TestPlanNamesWhatItWouldLose plans with the provider itself. Google is a server that
// lists the objects of earlier applies.
func TestPlanNamesWhatItWouldLose(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Terraform's provider, which takes seconds")
	}
	if _, err := exec.LookPath("terraform"); err != nil {
		t.Skip("terraform is not installed")
	}
	if _, err := os.Stat(os.Getenv("TF_CLI_CONFIG_FILE")); err != nil {
		t.Skip("TF_CLI_CONFIG_FILE names no mirror of the provider")
	}
	google := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		type object struct {
			Name string `json:"name"`
		}
		objects := []object{}
		for _, name := range []string{"longest_retention_days/90", "longest_retention_days/365", "secured_keys/1", "archive_days/7"} {
			objects = append(objects, object{"applied/" + name})
		}
		if r.URL.Path != "/b/affinity-test-affinity-source/o" || r.URL.Query().Get("prefix") != "applied/" {
			t.Errorf("the plan asks for %s", r.URL)
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"items": objects}); err != nil {
			t.Error(err)
		}
	}))
	defer google.Close()

	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"backend_override.tf": "terraform {\n  backend \"local\" {}\n}\n", "terraform.tfstate": lossProject} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (string, error) {
		c := exec.Command("terraform", append(args, "-no-color", "-input=false")...)
		c.Dir = dir
		c.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1", "GOOGLE_OAUTH_ACCESS_TOKEN=none", "GOOGLE_STORAGE_CUSTOM_ENDPOINT="+google.URL+"/")
		text, err := c.CombinedOutput()
		return strings.Join(strings.Fields(string(text)), " "), err // Terraform wraps its lines
	}
	if text, err := run("init", "-reconfigure"); err != nil {
		t.Fatal(err, text)
	}

	plan := func(variables ...string) (string, error) {
		args := []string{"plan", "-refresh=false", "-target=terraform_data.losses"}
		for _, v := range append(variables, "project_id=affinity-test", "environment=prod", "source_dir=null") {
			args = append(args, "-var", v)
		}
		return run(args...)
	}
	text, err := plan("longest_retention_days=90")
	if err == nil {
		t.Errorf("the plan loses data and says %s", text)
	}
	for _, want := range []string{
		"longest_retention_days was 365 and is 90: Bigtable would delete the events that are older.",
		"secured_keys was true and is false: Cloud KMS would destroy the key of all parents",
		"archive_days was 7 and is 0: Cloud Storage would delete",
		`-var 'allow_loss=["archive_days","longest_retention_days","secured_keys"]'`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan says %s, want %q", text, want)
		}
	}
	if text, err := plan("longest_retention_days=90", `allow_loss=["archive_days","longest_retention_days","secured_keys"]`); err != nil {
		t.Errorf("allowed losses: %v: %s", err, text)
	}
	if text, err := plan("longest_retention_days=0", "secured_keys=true", "archive_days=30"); err != nil {
		t.Errorf("larger values: %v: %s", err, text)
	}
}
