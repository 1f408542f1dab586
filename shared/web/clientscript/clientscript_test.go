package clientscript_test

import (
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/web/clientscript"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

const path = "/client/v1.js"

var rewrite = flag.Bool("rewrite", false, "write the hash of the script into the pages that show it")

func get(path string, header ...string) *httptest.ResponseRecorder {
	rt := httpapi.NewRouter(slog.New(slog.DiscardHandler))
	clientscript.Register(rt)
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	rt.ServeHTTP(w, r)
	return w
}

// A page of any site may load the script and check it, browsers keep it, and it has at most 3 KB.
func TestScriptIsServed(t *testing.T) {
	const most = 3 << 10
	plain, packed := get(path), get(path, "Accept-Encoding", "gzip, br")
	if packed.Body.Len() > most || packed.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("the script has %d bytes compressed, want at most %d", packed.Body.Len(), most)
	}
	unpacked, err := gzip.NewReader(packed.Body)
	must.Succeed(t, err)
	text, err := io.ReadAll(unpacked)
	must.Succeed(t, err)
	if hash := integrity(t); hash != hashOf(text) || string(text) != plain.Body.String() {
		t.Errorf("the hash of the script is %s, want %s", hash, hashOf(text))
	}
	if plain.Header().Get("Etag") == packed.Header().Get("Etag") {
		t.Errorf("both forms have the tag %s", plain.Header().Get("Etag"))
	}
	for name, want := range map[string]string{
		"Content-Type": "text/javascript; charset=utf-8", "Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding",
		"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin", "X-Content-Type-Options": "nosniff",
	} {
		for _, w := range []*httptest.ResponseRecorder{plain, packed} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
	if again := get(path, "If-None-Match", plain.Header().Get("Etag")); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("a script that the browser has: %d with %d bytes", again.Code, again.Body.Len())
	}
	if w := get("/client.js"); w.Code != http.StatusFound || w.Header().Get("Location") != path || strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("/client.js: %d %v", w.Code, w.Header())
	}
	for path, want := range map[string]int{"/client/v1.d.ts": 200, "/client/v2.js": 404, "/client/": 404, "/client/%2e%2e%2fv1.js": 404} {
		if w := get(path); w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}

// The types have each method of the client and no other one.
func TestTypesNameEveryMethod(t *testing.T) {
	script, types := get(path).Body.String(), get("/client/v1.d.ts").Body.String()
	_, client, _ := strings.Cut(types, "export interface Client {")
	client, _, _ = strings.Cut(client, "\n}")
	_, made, _ := strings.Cut(script, "    return {\n")
	made, _, _ = strings.Cut(made, "\n    };")
	names := func(of, pattern string) (all []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(of, -1) {
			all = append(all, m[1])
		}
		return all
	}
	described := names(client, `(?m)^  (?:readonly )?(\w+)[(:]`)
	returned := names(made, `(?m)^      (?:async |get )?(\w+)[(:]`)
	if len(returned) != 9 || strings.Join(described, " ") != strings.Join(returned, " ") {
		t.Errorf("the client has %v, v1.d.ts describes %v", returned, described)
	}
}

// integrity is the hash that a page is given with the script.
func integrity(t *testing.T) string {
	t.Helper()
	const url = `http://h/"><b>`
	tag := clientscript.Tag(url)
	hash := shown.FindString(tag)
	if want := `<script src="http://h/&#34;&gt;&lt;b&gt;` + path + `" integrity="` + hash + `" crossorigin="anonymous"></script>`; tag != want {
		t.Fatalf("a page loads the script by %s, want %s", tag, want)
	}
	return hash
}

func hashOf(text []byte) string {
	sum := sha512.Sum384(text)
	return "sha384-" + base64.StdEncoding.EncodeToString(sum[:])
}

var shown = regexp.MustCompile(`sha384-[A-Za-z0-9+/=]{64}`)

// Pages show the hash of the script as it is.
func TestHashIsShown(t *testing.T) {
	want := integrity(t)
	for _, path := range []string{"../../../functions/docs/guides/web-page.md", "../openapi/spec/0-api.yaml"} {
		text, err := os.ReadFile(path)
		must.Succeed(t, err)
		if *rewrite {
			text = shown.ReplaceAllLiteral(text, []byte(want))
			must.Succeed(t, os.WriteFile(path, text, 0o600))
		}
		hashes := shown.FindAllString(string(text), -1)
		if len(hashes) == 0 {
			t.Errorf("%s shows no hash of the script", path)
		}
		for _, hash := range hashes {
			if hash != want {
				t.Errorf("%s shows the hash %s, want %s (-rewrite writes it)", path, hash, want)
			}
		}
	}
}
