package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDeb installs a package into a root of its own, upgrades it and removes it, with Debian's own dpkg.
func TestDeb(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil || os.Getuid() != 0 {
		t.Skip("only root of a machine with dpkg can install a package")
	}
	files := map[string]file{"affinity": {[]byte("#!/bin/sh\necho one\n"), true}, "LICENSE": {[]byte("Apache\n"), false},
		"completions/affinity.bash": {[]byte("complete\n"), false}, "completions/affinity.ps1": {[]byte("x"), false}}
	root, at := t.TempDir(), time.Unix(1_780_000_000, 0)
	install := func(version string) {
		t.Helper()
		text, err := deb(version, strings.TrimSpace(run(t, "", nil, "dpkg", "--print-architecture")), files, at)
		if err != nil {
			t.Fatal(err)
		}
		again, err := deb(version, strings.TrimSpace(run(t, "", nil, "dpkg", "--print-architecture")), files, at)
		if err != nil || !bytes.Equal(text, again) {
			t.Errorf("other bytes of the same files (%v)", err)
		}
		name := filepath.Join(t.TempDir(), "affinity.deb")
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, "", nil, "dpkg", "--root="+root, "--force-script-chrootless", "--force-confold", "-i", name)
	}
	holds := func(name, want string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s holds %q (%v), want %q", name, text, err, want)
		}
	}
	for _, dir := range []string{"updates", "info"} { // of dpkg itself
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	install("1.2.0-rc1")
	if out := run(t, "", nil, filepath.Join(root, "usr/bin/affinity")); strings.TrimSpace(out) != "one" {
		t.Errorf("the program says %q", out)
	}
	holds("usr/lib/systemd/system/affinity.service", "ExecStart=/usr/bin/affinity serve")
	holds("usr/share/bash-completion/completions/affinity", "complete")
	holds("usr/share/doc/affinity/copyright", "Apache")
	settings := filepath.Join(root, "etc/affinity/affinity.conf")
	if err := os.WriteFile(settings, []byte("forwarded = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	install("1.2.0") // it comes after its candidate
	holds("etc/affinity/affinity.conf", "forwarded = 1")
	if out := run(t, "", nil, "dpkg", "--root="+root, "-s", "affinity"); !strings.Contains(out, "Version: 1.2.0\n") {
		t.Errorf("dpkg says\n%s", out)
	}
	run(t, "", nil, "dpkg", "--root="+root, "--force-script-chrootless", "-r", "affinity")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/affinity")); !os.IsNotExist(err) {
		t.Errorf("the program is still there (%v)", err)
	}
	holds("etc/affinity/affinity.conf", "forwarded = 1")
}
