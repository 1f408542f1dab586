package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every file is listed in static/README.md, and one of others is as its author published it.
func TestStaticFilesAreThoseListed(t *testing.T) {
	text, err := os.ReadFile("static/README.md")
	if err != nil {
		t.Fatal(err)
	}
	sums, listed := map[string]string{}, map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			continue
		}
		names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1)
		for _, name := range names {
			listed[name[1]] = true
			if sum := strings.Trim(cells[4], " `"); sum != "" {
				sums[name[1]] = sum
			}
		}
	}
	files, err := os.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := file.Name()
		if name == "README.md" {
			continue
		}
		data, err := os.ReadFile("static/" + name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if want, ok := sums[name]; !listed[name] || ok && want != hex.EncodeToString(sum[:]) {
			t.Errorf("%s has the checksum %x; static/README.md lists it: %v, with %q", name, sum, listed[name], want)
		}
		if _, ok := assets()[name]; !ok {
			t.Errorf("%s is not in the program", name)
		}
		delete(listed, name)
	}
	if len(listed) > 0 || sums["htmx.min.js"] == "" {
		t.Errorf("static/README.md lists files that do not exist, or not the checksum of htmx: %v", listed)
	}
}

// A file never changes under its name with a hash, so browsers keep it. Anything else is asked
// for again.
func TestStaticFilesAreKept(t *testing.T) {
	h := newTest(t)
	htmx, err := os.ReadFile("static/htmx.min.js")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{assetPath("htmx.min.js"): "public, max-age=31536000, immutable", "/console/static/htmx.min.js": "no-store"} {
		for _, encoding := range []string{"", "gzip, br"} {
			w := h.do("GET", name, "", func(r *http.Request) { r.Header.Set("Accept-Encoding", encoding) })
			body := io.Reader(w.Body)
			if encoding != "" {
				unpacked, err := gzip.NewReader(w.Body)
				if err != nil {
					t.Fatal(err)
				}
				body = unpacked
			}
			got, err := io.ReadAll(body)
			if err != nil || w.Code != http.StatusOK || !bytes.Equal(got, htmx) {
				t.Errorf("%s: %d, %d bytes, %v", name, w.Code, len(got), err)
			}
			if header := w.Header(); header.Get("Cache-Control") != want || header.Get("Vary") != "Accept-Encoding" || header.Get("Content-Type") != "text/javascript; charset=utf-8" {
				t.Errorf("%s: %v", name, header)
			}
		}
	}
	if w := h.do("GET", "/console/static/htmx.min.000000000000.js", ""); w.Code != http.StatusNotFound || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("a name of no file: %d %v", w.Code, w.Header())
	}
}

// The style sheet is whole: a rule that is not closed swallows what follows.
func TestStyleSheetIsWhole(t *testing.T) {
	text, err := os.ReadFile("static/console.css")
	if err != nil {
		t.Fatal(err)
	}
	depth := 0
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "/*") && depth > 0 {
			t.Fatalf("line %d begins a section within a rule", i+1)
		}
		if depth += strings.Count(line, "{") - strings.Count(line, "}"); depth < 0 {
			t.Fatalf("line %d closes what is not open", i+1)
		}
	}
	if depth != 0 {
		t.Errorf("%d rules are not closed", depth)
	}
}
