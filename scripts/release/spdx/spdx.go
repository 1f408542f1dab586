// Package spdx says what a file that is passed on holds: as an SPDX 2.3 list, and as the
// licences and notices that go with it.
package spdx

import (
	"encoding/json"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

// The address below which the files of a release are published.
const releases = "https://github.com/affinityengine/affinity/releases/download"

// noAssertion is SPDX's word for a fact that the list does not state.
const noAssertion = "NOASSERTION"

// Source is the file that a list is of, and what is built into it or of it.
type Source struct {
	File, SHA256 string    // its name, and the sum of its bytes
	Version      string    // of the engine, without v
	Commit       string    // "" if it is not known
	At           time.Time // of the list: the same source gives the same list
	Go           string    // the version of the standard library, such as go1.26.0
	Modules      []*debug.Module
}

// The parts of an SPDX document that the list uses, by the names of the
// specification: https://spdx.github.io/spdx-spec/v2.3/.
type (
	document struct {
		SPDXVersion       string         `json:"spdxVersion"`
		DataLicense       string         `json:"dataLicense"`
		SPDXID            string         `json:"SPDXID"`
		Name              string         `json:"name"`
		DocumentNamespace string         `json:"documentNamespace"`
		CreationInfo      creationInfo   `json:"creationInfo"`
		Packages          []spdxPackage  `json:"packages"`
		Relationships     []relationship `json:"relationships"`
	}
	creationInfo struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		Name                  string        `json:"name"`
		SPDXID                string        `json:"SPDXID"`
		VersionInfo           string        `json:"versionInfo,omitempty"`
		PackageFileName       string        `json:"packageFileName,omitempty"`
		PrimaryPackagePurpose string        `json:"primaryPackagePurpose,omitempty"`
		DownloadLocation      string        `json:"downloadLocation"`
		FilesAnalyzed         bool          `json:"filesAnalyzed"`
		Checksums             []checksum    `json:"checksums,omitempty"`
		SourceInfo            string        `json:"sourceInfo,omitempty"`
		LicenseConcluded      string        `json:"licenseConcluded"`
		LicenseDeclared       string        `json:"licenseDeclared"`
		CopyrightText         string        `json:"copyrightText"`
		ExternalRefs          []externalRef `json:"externalRefs,omitempty"`
	}
	checksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	externalRef struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	relationship struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

const documentID = "SPDXRef-DOCUMENT"

// modulePath is the module of the engine.
const modulePath = "github.com/affinityengine/affinity"

// List returns the SPDX 2.3 list of a file: the engine, Go's standard library and the
// modules that are linked.
func List(of Source) ([]byte, error) {
	main := modulePackage(&debug.Module{Path: modulePath, Version: "v" + of.Version})
	main.PackageFileName, main.PrimaryPackagePurpose = of.File, "APPLICATION"
	main.DownloadLocation = fmt.Sprintf("%s/v%s/%s", releases, of.Version, of.File)
	main.Checksums = []checksum{{"SHA256", of.SHA256}}
	main.LicenseConcluded, main.LicenseDeclared = "Apache-2.0", "Apache-2.0"
	if of.Commit != "" {
		main.SourceInfo = "commit " + of.Commit
	}
	// "stdlib" is the name by which vulnerability databases know it.
	std := modulePackage(&debug.Module{Path: "stdlib", Version: strings.TrimPrefix(of.Go, "go")})
	std.LicenseDeclared = "BSD-3-Clause"
	d := document{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: documentID, Name: of.File,
		DocumentNamespace: main.DownloadLocation + ".spdx.json/" + of.SHA256, // the hash makes it unique
		CreationInfo: creationInfo{of.At.Format(time.RFC3339),
			[]string{"Organization: Affinity", "Tool: affinity-release-" + api.Version}},
		Packages: []spdxPackage{main, std},
		Relationships: []relationship{
			{documentID, "DESCRIBES", main.SPDXID},
			{main.SPDXID, "DEPENDS_ON", std.SPDXID},
		},
	}
	for _, dep := range of.Modules {
		p := modulePackage(dep)
		d.Packages = append(d.Packages, p)
		d.Relationships = append(d.Relationships, relationship{main.SPDXID, "DEPENDS_ON", p.SPDXID})
	}
	text, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode the SPDX list: %w", err)
	}
	return append(text, '\n'), nil
}

var notInID = regexp.MustCompile(`[^a-zA-Z0-9.-]+`)

// modulePackage returns the entry of a module. Its licence is not stated: the texts
// are in the file, and nobody has compared them.
func modulePackage(m *debug.Module) spdxPackage {
	p := spdxPackage{
		Name: m.Path, SPDXID: "SPDXRef-" + notInID.ReplaceAllString(m.Path+"-"+m.Version, "-"), VersionInfo: m.Version,
		DownloadLocation: noAssertion, LicenseConcluded: noAssertion, LicenseDeclared: noAssertion,
		CopyrightText: noAssertion,
		ExternalRefs:  []externalRef{{"PACKAGE-MANAGER", "purl", packageURL(m)}},
	}
	if m.Sum != "" { // a hash of the names and hashes of its files, which SPDX has no algorithm for
		p.SourceInfo = "go.sum " + m.Sum
	}
	return p
}

// packageURL names a module as https://github.com/package-url/purl-spec says.
func packageURL(m *debug.Module) string {
	return "pkg:golang/" + strings.ToLower(m.Path) + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
}
