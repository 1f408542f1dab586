package main

import (
	"debug/buildinfo"
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

// source is what an SPDX list is of.
type source struct {
	Archive, SHA256 string
	Version         string
	At              time.Time
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

// spdx returns the SPDX 2.3 list of an archive: the tool, Go's standard library and
// every module that the binary says it was built from.
func spdx(of source, info *buildinfo.BuildInfo) ([]byte, error) {
	main := modulePackage(&debug.Module{Path: info.Main.Path, Version: "v" + of.Version})
	main.PackageFileName, main.PrimaryPackagePurpose = of.Archive, "APPLICATION"
	main.DownloadLocation = fmt.Sprintf("%s/v%s/%s", releases, of.Version, of.Archive)
	main.Checksums = []checksum{{"SHA256", of.SHA256}}
	main.LicenseConcluded, main.LicenseDeclared = "Apache-2.0", "Apache-2.0"
	main.SourceInfo = revision(info)
	// "stdlib" is the name by which vulnerability databases know it.
	std := modulePackage(&debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")})
	std.LicenseDeclared = "BSD-3-Clause"
	d := document{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: documentID, Name: of.Archive,
		DocumentNamespace: main.DownloadLocation + ".spdx.json/" + of.SHA256, // the hash makes it unique
		CreationInfo: creationInfo{of.At.Format(time.RFC3339),
			[]string{"Organization: Affinity", "Tool: affinity-release-" + api.Version}},
		Packages: []spdxPackage{main, std},
		Relationships: []relationship{
			{documentID, "DESCRIBES", main.SPDXID},
			{main.SPDXID, "DEPENDS_ON", std.SPDXID},
		},
	}
	for _, dep := range info.Deps {
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
// are in the archive, and nobody has compared them.
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

// revision names the commit of a binary.
func revision(info *buildinfo.BuildInfo) string {
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "commit " + s.Value
		}
	}
	return ""
}
