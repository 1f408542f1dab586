package shared_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	notSlug = regexp.MustCompile("[^a-z0-9 _-]")
)

// TestLinks follows every relative link in the Markdown files of the repository,
// to the file and to the heading. The README of a folder is one screen.
func TestLinks(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			switch entry.Name() {
			case ".git", "node_modules", ".terraform", "dist":
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) == ".md" {
			files++
			checkLinks(t, path)
		}
		if info, err := entry.Info(); err != nil || entry.Name() == "README.md" && info.Size() > 10<<10 {
			t.Errorf("%s may have 10,240 bytes: what is long is a page of functions/docs, by theme (%v)", path, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 {
		t.Errorf("checked %d Markdown files, want the whole repository", files)
	}
}

func checkLinks(t *testing.T, path string) {
	text := read(t, path)
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		target := m[1]
		if strings.Contains(target, ":") { // another site
			continue
		}
		file, anchor, _ := strings.Cut(target, "#")
		to := path
		if file != "" {
			to = filepath.Join(filepath.Dir(path), file)
		}
		if _, err := os.Stat(to); err != nil {
			t.Errorf("%s links to %s, which does not exist", path, target)
			continue
		}
		if anchor != "" && !hasHeading(read(t, to), anchor) {
			t.Errorf("%s links to %s, but %s has no such heading", path, target, to)
		}
	}
}

// hasHeading reports whether a Markdown text has a heading with this anchor, as
// GitHub derives anchors.
func hasHeading(text, anchor string) bool {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		slug := notSlug.ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(slug, " ", "-") == anchor {
			return true
		}
	}
	return false
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A newcomer reads README.md whole.
func TestReadmeIsShort(t *testing.T) {
	if size := len(read(t, "../README.md")); size > 9<<10 {
		t.Errorf("README.md has %d bytes, may have 9,216: what is long has a page of its own", size)
	}
}
