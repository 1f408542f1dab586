package terraform_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/affinityengine/affinity/terraform"
)

// TestDatabasesAreTerraformDefaults compares the constants that the command-line tool
// uses with the defaults of Terraform's variables.
func TestDatabasesAreTerraformDefaults(t *testing.T) {
	text, err := os.ReadFile("variables.tf")
	if err != nil {
		t.Fatal(err)
	}
	for variable, want := range map[string]string{
		"firestore_database": terraform.Database, "firestore_keys_database": terraform.KeysDatabase,
	} {
		m := regexp.MustCompile(`(?s)variable "` + variable + `" \{[^}]*?\n  default     = "([^"]+)"\n`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("variables.tf has no default of %s in the form that this test reads", variable)
		}
		if got := string(m[1]); got != want {
			t.Errorf("the default of Terraform's %s is %q, but the command-line tool opens %q", variable, got, want)
		}
	}
}
