package httpapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// Immutable is the Cache-Control of a path whose content never changes.
	Immutable = "public, max-age=31536000, immutable"
	// Minutes is that of a public path whose content changes with the engine.
	Minutes = "public, max-age=300"
)

// Static is an answer that does not change while the process lives.
type Static struct {
	contentType string
	etag        string // without its quotes
	plain       []byte
	packed      func() []byte
}

// NewStatic returns an answer with a body. It packs the body when a client first asks for that.
func NewStatic(contentType string, body []byte) Static {
	sum := sha256.Sum256(body)
	return Static{contentType, hex.EncodeToString(sum[:12]), body, sync.OnceValue(func() []byte {
		var packed bytes.Buffer
		w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		_, _ = w.Write(body) // to memory
		_ = w.Close()
		return packed.Bytes()
	})}
}

// Serve answers GET and HEAD, conditional requests, and ranges, and packs the body for
// clients that take gzip. cache is the Cache-Control, "" for an answer that no cache keeps.
func (s Static) Serve(w http.ResponseWriter, r *http.Request, cache string) {
	h := w.Header()
	if cache != "" {
		h.Set("Cache-Control", cache)
	}
	h.Set("Content-Type", s.contentType)
	h.Add("Vary", "Accept-Encoding")
	body, etag := s.plain, s.etag
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body, etag = s.packed(), s.etag+"-gzip"
	}
	h.Set("Etag", `"`+etag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
