package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"time"
)

//go:embed affinity.service
var unit []byte

//go:embed affinity.conf
var settings []byte

// debDocs is where a package keeps what nobody runs.
const debDocs = "usr/share/doc/affinity/"

// debPaths says where files of an archive lie in a package for Debian.
var debPaths = map[string]string{
	"affinity":                  "usr/bin/affinity",
	"LICENSE":                   debDocs + "copyright",
	"THIRD_PARTY_LICENSES":      debDocs + "THIRD_PARTY_LICENSES",
	"completions/affinity.bash": "usr/share/bash-completion/completions/affinity",
	"completions/_affinity":     "usr/share/zsh/vendor-completions/_affinity",
	"completions/affinity.fish": "usr/share/fish/vendor_completions.d/affinity.fish",
}

// Scripts of the package. None starts the engine: its settings have to name the host or the proxy first. A new
// version of a running one starts at once. A purge leaves the data, which only their owner may remove.
const (
	afterInstall = `#!/bin/sh
set -e
if [ "$1" = configure ] && [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart affinity.service
fi
`
	beforeRemove = `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
	systemctl disable --now affinity.service
fi
`
	afterRemove = `#!/bin/sh
set -e
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
`
)

// deb returns a package for Debian with the files of an archive for Linux, and the unit of systemd. Its bytes
// depend on the arguments and the version of Go.
func deb(version, architecture string, files map[string]file, at time.Time) ([]byte, error) {
	data := map[string]file{
		"usr/lib/systemd/system/affinity.service": {unit, false},
		"etc/affinity/affinity.conf":              {settings, false},
	}
	size := 0
	for name, f := range files {
		if to := debPaths[name]; to != "" {
			data[to] = f
			size += len(f.data)
		}
	}
	control := map[string]file{
		"control":   {debControl(version, architecture, size), false},
		"conffiles": {[]byte("/etc/affinity/affinity.conf\n"), false},
		"postinst":  {[]byte(afterInstall), true},
		"prerm":     {[]byte(beforeRemove), true},
		"postrm":    {[]byte(afterRemove), true},
	}
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	part := func(name string, text []byte) {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, at.Unix(), 0, 0, "100644", len(text))
		if out.Write(text); len(text)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	part("debian-binary", []byte("2.0\n"))
	for _, p := range []struct {
		name  string
		files map[string]file
	}{{"control.tar.gz", control}, {"data.tar.gz", data}} {
		text, err := tarball(".", p.files, at)
		if err != nil {
			return nil, err
		}
		part(p.name, text)
	}
	return out.Bytes(), nil
}

// debControl describes a package; size is that of its files in bytes.
func debControl(version, architecture string, size int) []byte {
	return fmt.Appendf(nil, `Package: affinity
Version: %s
Architecture: %s
Maintainer: Affinity <https://github.com/affinityengine/affinity>
Installed-Size: %d
Section: database
Priority: optional
Recommends: ca-certificates, tzdata
Homepage: https://github.com/affinityengine/affinity
Description: personalization engine
 Affinity computes from the events of users what each of them likes, and orders
 objects by it. The package has the engine and its command line tool in one
 program, and a unit of systemd, which is not started by itself: write its
 settings to /etc/affinity/affinity.conf, then: systemctl enable --now affinity
`, debVersion(version), architecture, (size+1023)/1024)
}

// debVersion is a version in which a pre-release comes before its release.
func debVersion(version string) string { return strings.ReplaceAll(version, "-", "~") }
