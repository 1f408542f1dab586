package tfvars_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/plan"
	"github.com/affinityengine/affinity/scripts/affinity/plan/tfvars"
)

// The example of production keeps six nodes and ten instances.
func TestProduction(t *testing.T) {
	v, err := tfvars.Read("../../../../terraform/environments/prod.tfvars.example")
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Customers) != 2 || v.LongestRetentionDays == nil || *v.LongestRetentionDays != 90 {
		t.Errorf("read %+v", v)
	}
	kept, err := v.Kept()
	if err != nil {
		t.Fatal(err)
	}
	want := plan.Kept{MinNodes: []float64{3, 3}, Billing: map[string]string{}, Warm: []plan.Warm{
		{Function: "ingest", Instances: 2, VCPU: 1, GiB: 0.5}, {Function: "ingest-acme", Instances: 1, VCPU: 1, GiB: 0.5},
		{Function: "process", Instances: 2, VCPU: 1, GiB: 1}, {Function: "process-acme", Instances: 1, VCPU: 1, GiB: 1},
		{Function: "profiles", Instances: 2, VCPU: 1, GiB: 0.5}, {Function: "profiles-acme", Instances: 1, VCPU: 1, GiB: 0.5},
		{Function: "rank", Instances: 1, VCPU: 1, GiB: 1.5},
	}}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("(-want +kept):\n%s", diff)
	}
}

func TestFiles(t *testing.T) {
	for _, tt := range []struct{ text, fault string }{
		{"", ""},
		{`clusters = { a = { min_nodes = 2 }, b = {} }`, ""},
		{`functions = { rank = { min_instances = 1, memory = "2Gi", billing = "instances" } }`, ""},
		{`functions = { ranks = { min_instances = 1 } }`, `names "ranks"`},
		{`functions = { rank = { min_instances = 1, memory = "much" } }`, "the size of rank"},
		{`clusters = var.clusters`, "variables"},
		{`clusters = {`, "variables"},
		{`resource "x" "y" {}`, "variables"},
		{`clusters = 3`, "variables"},
	} {
		path := filepath.Join(t.TempDir(), "x.tfvars")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		v, err := tfvars.Read(path)
		if err == nil {
			_, err = v.Kept()
		}
		if (err != nil) != (tt.fault != "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
			t.Errorf("%s: %v, want %q", tt.text, err, tt.fault)
		}
	}
}
