// Package tfvars reads from a file of Terraform variables what a deployment keeps whether
// it is used or not: nodes, warm instances, customers. It keeps no data.
package tfvars

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/affinityengine/affinity/scripts/affinity/plan"
	"github.com/affinityengine/affinity/terraform"
)

// Variables are the variables of terraform/ that a plan goes by. Nil and missing ones have
// the defaults of the configuration; Read sets that of clusters.
type Variables struct {
	Clusters             map[string]Cluster  `json:"clusters"`
	Functions            map[string]Function `json:"functions"`
	Customers            map[string]Customer `json:"customers"`
	LongestRetentionDays *float64            `json:"longest_retention_days"`
	PackWindowMs         *float64            `json:"pack_window_ms"`
	RequestLogSample     *float64            `json:"request_log_sample"`
	MessageLogSample     *float64            `json:"message_log_sample"`
	BalancerLogSample    *float64            `json:"balancer_log_sample"`
	StorageTargetGiB     *float64            `json:"storage_target_gib"`
	Warehouse            bool                `json:"warehouse"`
	WarehouseDays        *float64            `json:"warehouse_days"`
	// DataRegions and ServingRegions have resources of their own, which a plan leaves out.
	DataRegions    map[string]any `json:"data_regions"`
	ServingRegions []string       `json:"serving_regions"`
}

// Cluster is one of Bigtable. MinNodes nil: 1.
type Cluster struct {
	MinNodes *float64 `json:"min_nodes"`
}

// Function is what differs from the size of terraform/sizes.tf.
type Function struct {
	MinInstances float64 `json:"min_instances"`
	CPU          string  `json:"cpu"`
	Memory       string  `json:"memory"`
	Billing      string  `json:"billing"`
}

// Customer is a customer with a host and an app.
type Customer struct {
	Dedicated    bool    `json:"dedicated"`
	MinInstances float64 `json:"min_instances"`
}

// Read reads a file such as prod.tfvars. Its values must be literals, as in a file of
// variables. Variables that a plan does not go by may have any form.
func Read(path string) (Variables, error) {
	var v Variables
	file, faults := hclparse.NewParser().ParseHCLFile(path)
	if faults.HasErrors() {
		return v, fmt.Errorf("read the variables of Terraform: %w", faults)
	}
	attributes, faults := file.Body.JustAttributes()
	if faults.HasErrors() {
		return v, fmt.Errorf("read the variables of Terraform: %w", faults)
	}
	literals := map[string]hcl.Expression{}
	for name, a := range attributes {
		literals[name] = a.Expr
	}
	if err := decode(literals, &v); err != nil {
		return v, fmt.Errorf("read the variables of Terraform in %s: %w", path, err)
	}
	if len(v.Clusters) == 0 {
		v.Clusters = map[string]Cluster{"cluster-1": {}}
	}
	return v, nil
}

// minNodes returns the least number of nodes of each cluster, largest first.
func (v Variables) minNodes() (nodes []float64) {
	for _, c := range v.Clusters {
		n := 1.0
		if c.MinNodes != nil {
			n = *c.MinNodes
		}
		nodes = append(nodes, n)
	}
	slices.Sort(nodes)
	slices.Reverse(nodes)
	return nodes
}

// Kept returns what the deployment keeps. The sizes of instances are those of terraform/sizes.tf,
// but for what the file says.
func (v Variables) Kept() (plan.Kept, error) {
	kept := plan.Kept{MinNodes: v.minNodes(), Billing: map[string]string{}}
	sizes, err := readSizes()
	if err != nil {
		return kept, err
	}
	for name, f := range v.Functions {
		if f.Billing != "" {
			kept.Billing[name] = f.Billing
		}
	}
	warm := v.warm()
	for _, name := range slices.Sorted(maps.Keys(warm)) {
		size, err := v.size(sizes, name)
		if err != nil {
			return kept, err
		}
		size.Instances = warm[name]
		kept.Warm = append(kept.Warm, size)
	}
	return kept, nil
}

// warm returns how many instances of each function are kept, those of dedicated customers among
// them. As in terraform/functions.tf, a customer's min_instances are those of its own ingest and
// profiles, unless functions names these.
func (v Variables) warm() map[string]float64 {
	warm := map[string]float64{}
	for name, c := range v.Customers {
		if c.Dedicated && c.MinInstances > 0 {
			warm["ingest-"+name], warm["profiles-"+name] = c.MinInstances, c.MinInstances
		}
	}
	for name, f := range v.Functions {
		if f.MinInstances > 0 {
			warm[name] = f.MinInstances
		}
	}
	return warm
}

// size returns the size of an instance of a function, or of that of a customer.
func (v Variables) size(sizes map[string]Function, name string) (plan.Warm, error) {
	of, known := sizes[name]
	if function, _, ok := strings.Cut(name, "-"); !known && ok {
		of, known = sizes[function]
	}
	if !known {
		return plan.Warm{}, fmt.Errorf("functions names %q, which terraform/sizes.tf does not have", name)
	}
	own := v.Functions[name]
	cpu, err := strconv.ParseFloat(cmp.Or(own.CPU, of.CPU), 64)
	memory := cmp.Or(own.Memory, of.Memory)
	gib, mib := strings.CutSuffix(memory, "Mi")
	size, inMemory := strconv.ParseFloat(strings.TrimSuffix(gib, "Gi"), 64)
	if mib {
		size /= 1024
	}
	if err = errors.Join(err, inMemory); err != nil {
		return plan.Warm{}, fmt.Errorf("the size of %s, %s vCPU and %s: %w", name, cmp.Or(own.CPU, of.CPU), memory, err)
	}
	return plan.Warm{Function: name, VCPU: cpu, GiB: size}, nil
}

// readSizes reads terraform/sizes.tf.
func readSizes() (map[string]Function, error) {
	file, faults := hclsyntax.ParseConfig([]byte(terraform.Sizes), "sizes.tf", hcl.InitialPos)
	if faults.HasErrors() {
		return nil, faults
	}
	sizes := map[string]Function{}
	for _, block := range file.Body.(*hclsyntax.Body).Blocks {
		if a := block.Body.Attributes["sizes"]; block.Type == "locals" && a != nil {
			return sizes, decode(map[string]hcl.Expression{"sizes": a.Expr}, &struct {
				Sizes *map[string]Function `json:"sizes"`
			}{&sizes})
		}
	}
	return nil, errors.New("terraform/sizes.tf has no local sizes")
}

// decode decodes literals, by their names.
func decode(literals map[string]hcl.Expression, into any) error {
	values := map[string]cty.Value{}
	for name, literal := range literals {
		value, faults := literal.Value(nil)
		if faults.HasErrors() {
			return faults
		}
		values[name] = value
	}
	all := cty.ObjectVal(values)
	text, err := ctyjson.Marshal(all, all.Type())
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
