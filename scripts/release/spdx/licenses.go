package spdx

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// LicensesName is the name of the file with what Licenses returns.
const LicensesName = "THIRD_PARTY_LICENSES"

// licenseFile matches the files of a module that say under which terms it may be
// passed on.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// Terms is where the licence of something that is linked lies: a module's path or "Go",
// and its folder.
type Terms struct{ Of, Dir string }

// Licenses returns the licences and notices of all that something links, after a line that
// begins with what, such as "affinity 1.0.0 links Go and": most of them ask that they go with
// it.
func Licenses(what string, of []Terms) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s the modules below. These are their licences and notices.\n", what)
	for _, terms := range of {
		entries, err := os.ReadDir(terms.Dir)
		if err != nil {
			return nil, fmt.Errorf("%s: read its licence: %w", terms.Of, err)
		}
		found := false
		for _, e := range entries {
			if !licenseFile.MatchString(e.Name()) || e.IsDir() {
				continue
			}
			text, err := os.ReadFile(filepath.Join(terms.Dir, e.Name()))
			if err != nil {
				return nil, fmt.Errorf("%s: read its licence: %w", terms.Of, err)
			}
			found = true
			fmt.Fprintf(&out, "\n%s\n%s: %s\n%[1]s\n\n%[4]s\n", strings.Repeat("=", 80), terms.Of, e.Name(),
				bytes.TrimRight(text, "\r\n "))
		}
		if !found {
			return nil, fmt.Errorf("%s has no file with a licence in %s: nobody may pass it on", terms.Of, terms.Dir)
		}
	}
	return out.Bytes(), nil
}
