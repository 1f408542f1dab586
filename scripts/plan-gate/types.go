package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// ofType returns what is lost by changes that only resources of one type have.
func (c change) ofType() []string {
	switch c.Type {
	case "google_bigtable_gc_policy":
		return c.collected()
	case "google_bigtable_instance":
		return c.removed("cluster", "cluster_id", "what the other clusters have not copied")
	case "google_bigtable_table":
		return c.removed("column_family", "family", "its cells")
	case "google_kms_crypto_key":
		before, after := c.Change.Before["rotation_period"], c.Change.After["rotation_period"]
		if before != nil && after == nil && !c.unknown("rotation_period") {
			return []string{"the key is rotated no longer"}
		}
	case "google_storage_bucket":
		return c.lifecycle()
	}
	return nil
}

// removed returns the blocks that are there no longer, with what goes with one.
func (c change) removed(block, name, lost string) []string {
	if c.unknown(block) {
		return []string{block + " is known only after the apply"}
	}
	var reasons []string
	for _, before := range list(c.Change.Before, block) {
		stays := func(after map[string]any) bool { return after[name] == before[name] }
		if !slices.ContainsFunc(list(c.Change.After, block), stays) {
			reasons = append(reasons, fmt.Sprintf("%s %v is removed, and with it %s", block, before[name], lost))
		}
	}
	return reasons
}

// corner is a least cell that Bigtable drops: it drops each cell that is older than age and has at
// least so many newer versions. What a rule drops are the cells above one of its corners.
type corner struct {
	age      time.Duration
	versions float64
}

// rule is one of Bigtable's rules of garbage collection, as the provider writes them.
type rule struct {
	Mode       string  `json:"mode"`
	Rules      []rule  `json:"rules"`
	MaxAge     string  `json:"max_age"`
	MaxVersion float64 `json:"max_version"`
}

func (r rule) corners() ([]corner, error) {
	var all []corner
	switch {
	case r.MaxAge != "":
		age, err := duration(r.MaxAge, 0)
		return []corner{{age: age}}, err
	case r.MaxVersion > 0:
		return []corner{{versions: r.MaxVersion}}, nil
	case len(r.Rules) == 0 || r.Mode == "" && len(r.Rules) > 1:
		return nil, errors.New("a rule without an age, a number of versions or a mode")
	}
	for i, one := range r.Rules {
		own, err := one.corners()
		if err != nil {
			return nil, err
		}
		if i == 0 || !strings.EqualFold(r.Mode, "intersection") {
			all = append(all, own...)
			continue
		}
		var both []corner
		for _, a := range all {
			for _, b := range own {
				both = append(both, corner{max(a.age, b.age), max(a.versions, b.versions)})
			}
		}
		all = both
	}
	return all, nil
}

// corners of the text of rules. Without rules Bigtable drops nothing.
func corners(text any) ([]corner, error) {
	if text == nil || text == "" {
		return nil, nil
	}
	var r rule
	if err := json.Unmarshal([]byte(fmt.Sprint(text)), &r); err != nil {
		return nil, err
	}
	return r.corners()
}

// collected says whether Bigtable would drop cells that it keeps now.
func (c change) collected() []string {
	if c.unknown("gc_rules") {
		return []string{"gc_rules is known only after the apply"}
	}
	for _, block := range []string{"max_age", "max_version"} { // the older form
		if !reflect.DeepEqual(list(c.Change.Before, block), list(c.Change.After, block)) {
			return []string{block + " changes, which cannot be compared"}
		}
	}
	text := [2]any{c.Change.Before["gc_rules"], c.Change.After["gc_rules"]}
	before, err := corners(text[0])
	after, err2 := corners(text[1])
	if err := errors.Join(err, err2); err != nil {
		if text[0] == text[1] {
			return nil
		}
		return []string{fmt.Sprintf("gc_rules was %v and is %v, which cannot be compared: %v", text[0], text[1], err)}
	}
	for _, a := range after {
		dropped := func(b corner) bool { return b.age <= a.age && b.versions <= a.versions }
		if !slices.ContainsFunc(before, dropped) {
			return []string{fmt.Sprintf("gc_rules drops cells that were kept: it was %v and is %v", text[0], text[1])}
		}
	}
	return nil
}

// lifecycle says whether a bucket would delete objects that it keeps now.
func (c change) lifecycle() []string {
	var reasons []string
	if at(c.Change.Before, "versioning.0.enabled") == true && at(c.Change.After, "versioning.0.enabled") != true {
		reasons = append(reasons, "versioning ends, so replaced objects are gone at once")
	}
	if c.unknown("lifecycle_rule") {
		return append(reasons, "lifecycle_rule is known only after the apply")
	}
	before := deletes(c.Change.Before)
	for _, after := range deletes(c.Change.After) {
		if !slices.ContainsFunc(before, func(b map[string]any) bool { return covers(b, after) }) {
			reasons = append(reasons, fmt.Sprintf("lifecycle_rule deletes objects that were kept: %s, before %s",
				condition(after), orNone(before)))
		}
	}
	return reasons
}

// deletes returns the conditions of the rules that delete.
func deletes(bucket map[string]any) []map[string]any {
	var conditions []map[string]any
	for _, r := range list(bucket, "lifecycle_rule") {
		if at(r, "action.0.type") == "Delete" {
			conditions = append(conditions, append(list(r, "condition"), map[string]any{})[0])
		}
	}
	return conditions
}

// covers says whether what meets the condition after has met the one before: each of its numbers,
// from which on an object is deleted, is at most as large, and its other values are the same.
func covers(before, after map[string]any) bool {
	for name, b := range before {
		if unset(b) {
			continue
		}
		a := after[name]
		smaller, isNumber := b.(float64)
		larger, areNumbers := a.(float64)
		if isNumber != areNumbers || isNumber && larger < smaller || !isNumber && !reflect.DeepEqual(a, b) {
			return false
		}
	}
	return true
}

func unset(v any) bool {
	items, isList := v.([]any)
	return v == nil || v == "" || v == 0.0 || v == false || v == "ANY" || isList && len(items) == 0
}

// condition is the part of a condition that is set.
func condition(values map[string]any) string {
	var parts []string
	for name, v := range values {
		if !unset(v) {
			parts = append(parts, fmt.Sprintf("%s %v", name, v))
		}
	}
	if len(parts) == 0 {
		return "all"
	}
	slices.Sort(parts)
	return strings.Join(parts, " and ")
}

func orNone(conditions []map[string]any) string {
	if len(conditions) == 0 {
		return "none"
	}
	var parts []string
	for _, values := range conditions {
		parts = append(parts, condition(values))
	}
	return strings.Join(parts, ", ")
}
