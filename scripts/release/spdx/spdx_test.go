package spdx

import (
	"encoding/json"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

var (
	spdxID = regexp.MustCompile(`^SPDXRef-[a-zA-Z0-9.-]+$`)
	purl   = regexp.MustCompile(`^pkg:golang/[a-z0-9./_~-]+@[^\s+]+$`)
)

// faults returns what SPDX 2.3 requires of a document and this one lacks. The
// sections are those of https://spdx.github.io/spdx-spec/v2.3/.
func faults(d document) (list []string) {
	require := func(ok bool, fault string) {
		if !ok {
			list = append(list, fault)
		}
	}
	require(d.SPDXVersion == "SPDX-2.3", "6.1: the version is "+d.SPDXVersion)
	require(d.DataLicense == "CC0-1.0", "6.2: the licence of the list is "+d.DataLicense)
	require(d.SPDXID == "SPDXRef-DOCUMENT", "6.3: the document is "+d.SPDXID)
	require(d.Name != "", "6.4: no name")
	require(strings.HasPrefix(d.DocumentNamespace, "https://") && !strings.Contains(d.DocumentNamespace, "#"), "6.5: the namespace is "+d.DocumentNamespace)
	require(len(d.CreationInfo.Creators) > 0, "6.8: no creator")
	for _, creator := range d.CreationInfo.Creators {
		require(regexp.MustCompile(`^(Person|Organization|Tool): \S`).MatchString(creator), "6.8: the creator is "+creator)
	}
	_, err := time.Parse("2006-01-02T15:04:05Z", d.CreationInfo.Created)
	require(err == nil, "6.9: created at "+d.CreationInfo.Created)
	ids := map[string]bool{d.SPDXID: true}
	for _, p := range d.Packages {
		require(p.Name != "", "7.1: no name of "+p.SPDXID)
		require(spdxID.MatchString(p.SPDXID) && !ids[p.SPDXID], "7.2: the id of "+p.Name+" is "+p.SPDXID)
		require(p.DownloadLocation != "", "7.7: no download location of "+p.Name)
		for _, c := range p.Checksums {
			require(c.Algorithm == "SHA256" && regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(c.Value), "7.10: the checksum of "+p.Name+" is "+c.Value)
		}
		require(p.LicenseConcluded != "" && p.LicenseDeclared != "" && p.CopyrightText != "", "7.13 to 7.17: no licence or copyright of "+p.Name)
		for _, r := range p.ExternalRefs {
			require(r.Category == "PACKAGE-MANAGER" && r.Type == "purl" && purl.MatchString(r.Locator), "7.21: the reference of "+p.Name+" is "+r.Locator)
		}
		ids[p.SPDXID] = true
	}
	described := false
	for _, r := range d.Relationships {
		require(ids[r.Element] && ids[r.Related], "11.1: "+r.Element+" "+r.Type+" "+r.Related+" names what is not there")
		described = described || (r.Element == d.SPDXID && r.Type == "DESCRIBES")
	}
	require(described, "11.1: the document describes nothing")
	require(len(d.Relationships) == len(d.Packages), "11.1: not every package is described or needed")
	return list
}

// TestFaultsOfALists finds each fault of a list once it is there.
func TestFaultsOfALists(t *testing.T) {
	of := Source{File: "affinity_1.tar.gz", SHA256: strings.Repeat("0a", 32), Version: "1.0.0", At: time.Unix(1_800_000_000, 0).UTC(),
		Go: "go1.26.0", Modules: []*debug.Module{{Path: "example.com/Some/module_a", Version: "v2.0.0+incompatible", Sum: "h1:abc="}}}
	made := func() (d document) {
		text, err := List(of)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	if list := faults(made()); len(list) > 0 {
		t.Errorf("faults of a list of the builder: %q", list)
	}
	if got, want := made().Packages[2].ExternalRefs[0].Locator, "pkg:golang/example.com/some/module_a@v2.0.0%2Bincompatible"; got != want {
		t.Errorf("the module is %s, want %s", got, want)
	}
	for name, spoil := range map[string]func(*document){
		"6.5":  func(d *document) { d.DocumentNamespace += "#x" },
		"6.9":  func(d *document) { d.CreationInfo.Created = "today" },
		"7.2":  func(d *document) { d.Packages[1].SPDXID = d.Packages[0].SPDXID },
		"7.7":  func(d *document) { d.Packages[1].DownloadLocation = "" },
		"7.13": func(d *document) { d.Packages[2].LicenseDeclared = "" },
		"7.21": func(d *document) { d.Packages[2].ExternalRefs[0].Locator = "example.com" },
		"11.1": func(d *document) { d.Relationships = d.Relationships[1:] },
	} {
		d := made()
		spoil(&d)
		if list := strings.Join(faults(d), "\n"); !strings.Contains(list, name) {
			t.Errorf("%s is spoiled, and the faults are %q", name, list)
		}
	}
}
