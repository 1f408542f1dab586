package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// plan is what the gate reads of Terraform's JSON of a plan.
type plan struct {
	// PlannedValues tells a plan from a state, which has values in place of them.
	PlannedValues json.RawMessage `json:"planned_values"`
	Errored       bool            `json:"errored"`
	Changes       []change        `json:"resource_changes"`
}

// change is what a plan does to one resource.
type change struct {
	Address string `json:"address"`
	Mode    string `json:"mode"`
	Type    string `json:"type"`
	Deposed string `json:"deposed"`
	Change  struct {
		Actions []string       `json:"actions"`
		Before  map[string]any `json:"before"` // nil before a creation
		After   map[string]any `json:"after"`  // nil after a destruction
		// AfterUnknown has true in place of each value that only the apply knows, and is
		// no object after a destruction.
		AfterUnknown any `json:"after_unknown"`
		// ReplacePaths are those of the values that need another resource.
		ReplacePaths [][]any `json:"replace_paths"`
	} `json:"change"`
}

func decode(text []byte) (plan, error) {
	var p plan
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("it is no JSON of a plan: %w", err)
	}
	if p.PlannedValues == nil {
		return p, errors.New("it is no plan: terraform show -json of a plan has planned_values")
	}
	if p.Errored {
		return p, errors.New("the plan ended with an error, so it does not have all changes: plan again")
	}
	return p, nil
}

// losses returns a line for each address that loses something: what, and by which change.
func (p plan) losses() []string {
	var lines []string
	for _, c := range p.Changes {
		if c.Mode != "managed" {
			continue
		}
		if reasons := c.reasons(); len(reasons) > 0 {
			lines = append(lines, c.Address+": "+strings.Join(reasons, "; "))
		}
	}
	return lines
}

func (c change) reasons() []string {
	var reasons []string
	if lost := c.holds(); lost != "" && slices.Contains(c.Change.Actions, "delete") {
		how := "is destroyed"
		if slices.Contains(c.Change.Actions, "create") {
			how = "is replaced" + c.because()
		}
		if c.Deposed != "" {
			how = "an object that it replaced before is destroyed"
		}
		reasons = append(reasons, how+": "+lost)
	}
	if c.Change.Before == nil || c.Change.After == nil {
		return reasons
	}
	return slices.Concat(reasons, c.unprotected(), c.shorter(), c.ofType())
}

// holds returns what goes with the resource; empty if it holds nothing.
func (c change) holds() string {
	// A view of BigQuery has no rows of its own.
	if view, _ := at(c.Change.Before, "view").([]any); len(view) > 0 {
		return ""
	}
	return held[c.Type]
}

// because names the values that need another resource.
func (c change) because() string {
	var names []string
	for _, path := range c.Change.ReplacePaths {
		if len(path) > 0 {
			names = append(names, fmt.Sprint(path[0]))
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return " because " + strings.Join(slices.Compact(names), " and ") + " changes"
}

// unknown says whether only the apply knows the value at a path.
func (c change) unknown(path string) bool {
	v := c.Change.AfterUnknown
	for name := range strings.SplitSeq(path, ".") {
		if v == true {
			return true
		}
		v = child(v, name)
	}
	return anyTrue(v)
}

func anyTrue(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case []any:
		return slices.ContainsFunc(v, anyTrue)
	case map[string]any:
		for _, one := range v {
			if anyTrue(one) {
				return true
			}
		}
	}
	return false
}

// at returns the value at a path of names and, in lists, numbers; nil if there is none.
func at(values map[string]any, path string) any {
	var v any = values
	for name := range strings.SplitSeq(path, ".") {
		v = child(v, name)
	}
	return v
}

func child(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[name]
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i < len(v) {
			return v[i]
		}
	}
	return nil
}

// list returns the blocks at a name.
func list(values map[string]any, name string) []map[string]any {
	items, _ := values[name].([]any)
	var blocks []map[string]any
	for _, item := range items {
		if block, ok := item.(map[string]any); ok {
			blocks = append(blocks, block)
		}
	}
	return blocks
}
