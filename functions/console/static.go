package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// The files that pages load. static/README.md says where those of others are from; a test
// compares them with their checksums.
//
//go:embed static/*.css static/*.js static/*.svg
var staticFiles embed.FS

// asset is a file that pages load, under a name that changes with its content.
type asset struct {
	httpapi.Static
	name string // with the hash
}

// assets are the files by their names without hash, and with it.
var assets = sync.OnceValue(func() map[string]asset {
	all := map[string]asset{}
	files, err := staticFiles.ReadDir("static")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	for _, file := range files {
		plain, err := staticFiles.ReadFile("static/" + file.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(plain)
		ending := path.Ext(file.Name())
		contentType := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
			".svg": "image/svg+xml"}[ending]
		a := asset{httpapi.NewStatic(contentType, plain),
			strings.TrimSuffix(file.Name(), ending) + "." + hex.EncodeToString(sum[:6]) + ending}
		all[file.Name()], all[a.name] = a, a
	}
	return all
})

// assetPath returns the path of a file that pages load.
func assetPath(name string) string {
	a, ok := assets()[name]
	if !ok {
		panic("the console has no file " + name)
	}
	return "/console/static/" + a.name
}

func serveStatic(w http.ResponseWriter, r *http.Request) error {
	a, ok := assets()[r.PathValue("file")]
	if !ok {
		return httpapi.Errorf(http.StatusNotFound, "No such file")
	}
	cache := ""
	if r.PathValue("file") == a.name {
		cache = httpapi.Immutable
	}
	a.Serve(w, r, cache)
	return nil
}
