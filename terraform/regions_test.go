package terraform_test

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
)

// The functions understand the regions that Terraform gives them: the test of Terraform
// asserts the text that this one reads.
func TestRegionsOfTerraform(t *testing.T) {
	text, err := os.ReadFile("tests/data_regions.tftest.hcl")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`output\.regions == ("\[.*\]")`).FindSubmatch(text)
	if m == nil {
		t.Fatal("tests/data_regions.tftest.hcl asserts no output regions in the form that this test reads")
	}
	given, err := strconv.Unquote(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	var r config.Regions
	if err := r.UnmarshalText([]byte(given)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Names(), []string{"eu", "jp", "us"}) {
		t.Errorf("regions %v", r.Names())
	}
	if us, _ := r.Find("us"); us.Location != "us-central1" || us.Instance != "affinity-us" || !strings.HasPrefix(us.Worker, "https://worker-") {
		t.Errorf("us is %+v", us)
	}
	// modules/events appends this ending to all its topics.
	if got, want := r.Named("events-acme", "us"), "events-acme"+".us"; got != want || !strings.Contains(string(text), `"${topic}.${name}"`) {
		t.Errorf("the engine sends to the topic %s, Terraform creates %s", got, want)
	}
}
