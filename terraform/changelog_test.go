package terraform_test

import (
	"os"
	"regexp"
	"testing"
)

var order = regexp.MustCompile(`(?i)apply\s+(the\s+)?terraform(\s+configuration)?\s*(before|after|with|first|[.:])`)

// TestOneOrderOfUpgrades holds the changelog to the one rule of operate/upgrade.md: the configuration
// first, then the functions. An entry with an order of its own would be another rule.
func TestOneOrderOfUpgrades(t *testing.T) {
	text, err := os.ReadFile("../.github/CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range order.FindAll(text, -1) {
		t.Errorf("the changelog says %q: the rule of operate/upgrade.md holds for every entry", found)
	}
	for _, s := range []string{"apply Terraform first", "Apply the Terraform\n  configuration with the functions", "Apply the Terraform configuration: it adds"} {
		if !order.MatchString(s) {
			t.Errorf("%q is not found", s)
		}
	}
}
