package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/mod/semver"
)

// standard is the name that the checker and the database give to the standard library.
const standard = "stdlib"

// finding is a vulnerability of a module that a program links. With a function its code is linked.
type finding struct {
	OSV   string `json:"osv"`
	Fixed string `json:"fixed_version"`
	Trace []struct {
		Module, Version, Package, Function string
	} `json:"trace"`
}

// linked returns what the checker found whose code is linked, a line each, in the order of their names. Those of the
// standard library count if they are in the given version of it, such as 1.26.8, whatever the program was built with.
func linked(messages []byte, library string) (lines []string, err error) {
	entries := map[string]entry{}
	decoder := json.NewDecoder(bytes.NewReader(messages))
	for {
		var message struct {
			OSV     *entry   `json:"osv"`
			Finding *finding `json:"finding"`
		}
		if err := decoder.Decode(&message); errors.Is(err, io.EOF) {
			slices.Sort(lines)
			return slices.Compact(lines), nil
		} else if err != nil {
			return nil, err
		}
		if message.OSV != nil {
			entries[message.OSV.ID] = *message.OSV // before its findings
		}
		f := message.Finding
		if f == nil || len(f.Trace) == 0 || f.Trace[0].Function == "" {
			continue
		}
		at := f.Trace[0]
		version := at.Version
		if at.Module == standard {
			if version = "v" + library; !entries[f.OSV].affects(standard, version) {
				continue
			}
		}
		lines = append(lines, fmt.Sprintf("%s in %s %s, package %s, repaired in %s: https://pkg.go.dev/vuln/%s",
			f.OSV, at.Module, version, at.Package, f.Fixed, f.OSV))
	}
}

// affects reports whether a version of a module, such as v1.26.8, has the vulnerability: whether the last event of
// its ranges up to the version introduced it.
func (e entry) affects(module, version string) bool {
	for _, affected := range e.Affected {
		if affected.Package.Name != module {
			continue
		}
		for _, r := range affected.Ranges {
			last, in := "", false
			for _, event := range r.Events {
				at := "v" + event.Introduced + event.Fixed // one of them is set
				if at == "v0" {
					at = "v0.0.0"
				}
				if semver.Compare(at, version) <= 0 && (last == "" || semver.Compare(at, last) >= 0) {
					last, in = at, event.Introduced != ""
				}
			}
			if in {
				return true
			}
		}
	}
	return false
}
