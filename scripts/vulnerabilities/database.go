package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// entry is what the index needs of an entry of the database: https://ossf.github.io/osv-schema.
type entry struct {
	ID        string   `json:"id"`
	Modified  string   `json:"modified"`
	Withdrawn string   `json:"withdrawn"`
	Aliases   []string `json:"aliases"`
	Affected  []struct {
		Package struct{ Name string } `json:"package"`
		Ranges  []struct {
			Events []struct{ Introduced, Fixed string } `json:"events"`
		} `json:"ranges"`
	} `json:"affected"`
}

// The files of the index: https://go.dev/doc/security/vuln/database#api.
type (
	moduleIndex struct {
		Path  string       `json:"path"`
		Vulns []moduleVuln `json:"vulns"`
	}
	moduleVuln struct {
		ID       string `json:"id"`
		Modified string `json:"modified"`
		Fixed    string `json:"fixed,omitempty"`
	}
	vulnIndex struct {
		ID       string   `json:"id"`
		Modified string   `json:"modified"`
		Aliases  []string `json:"aliases,omitempty"`
	}
)

// index writes the entries in a folder as the database that the checker reads, and returns
// their number.
func index(from, to string) (int, error) {
	paths, err := filepath.Glob(filepath.Join(from, "*.json"))
	if err != nil {
		return 0, err
	}
	if len(paths) == 0 {
		return 0, fmt.Errorf("%s has no entries", from)
	}
	err = errors.Join(os.MkdirAll(filepath.Join(to, "ID"), 0o755), os.MkdirAll(filepath.Join(to, "index"), 0o755))
	if err != nil {
		return 0, err
	}
	modules, vulns, modified := map[string]moduleIndex{}, []vulnIndex{}, ""
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		var e entry
		if err := json.Unmarshal(text, &e); err != nil {
			return 0, fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		if e.Withdrawn != "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(to, "ID", e.ID+".json"), text, 0o644); err != nil {
			return 0, err
		}
		modified = max(modified, e.Modified)
		vulns = append(vulns, vulnIndex{e.ID, e.Modified, e.Aliases})
		for _, affected := range e.Affected {
			m := modules[affected.Package.Name]
			m.Path = affected.Package.Name
			fixed := ""
			for _, r := range affected.Ranges {
				for _, event := range r.Events {
					fixed = cmp.Or(event.Fixed, fixed)
				}
			}
			m.Vulns = append(m.Vulns, moduleVuln{e.ID, e.Modified, fixed})
			modules[m.Path] = m
		}
	}
	sorted := slices.SortedFunc(maps.Values(modules), func(a, b moduleIndex) int { return cmp.Compare(a.Path, b.Path) })
	files := map[string]any{"db": map[string]string{"modified": modified}, "modules": sorted, "vulns": vulns}
	for name, content := range files {
		text, err := json.Marshal(content)
		if err != nil {
			return 0, err
		}
		if err := os.WriteFile(filepath.Join(to, "index", name+".json"), text, 0o644); err != nil {
			return 0, err
		}
	}
	return len(vulns), nil
}
