package terraform_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/affinityengine/affinity/terraform"
)

// TestDatabaseIsTerraformDefault compares the constant that the command-line tool
// uses with the default of Terraform's variable.
func TestDatabaseIsTerraformDefault(t *testing.T) {
	text, err := os.ReadFile("variables.tf")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?s)variable "firestore_database" \{[^}]*?\n  default     = "([^"]+)"\n`).FindSubmatch(text)
	if m == nil {
		t.Fatal("variables.tf has no default of firestore_database in the form that this test reads")
	}
	if got := string(m[1]); got != terraform.Database {
		t.Errorf("Terraform creates database %q, but the command-line tool opens %q", got, terraform.Database)
	}
}
