package httpapi

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
)

// ReadBody reads a request's body of at most limit bytes, both before and after
// decompression. It ignores the content type: clients send JSON under many.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLarge()
	}
	// One byte more, so that a body of exactly limit bytes passes.
	packed := http.MaxBytesReader(w, r.Body, limit+1)
	var in io.Reader = packed
	switch encoding := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		unpacked, err := gzip.NewReader(packed)
		if err != nil {
			return nil, bodyError(err)
		}
		in = unpacked
	default:
		return nil, Errorf(http.StatusUnsupportedMediaType, "Content-Encoding must be gzip or absent")
	}
	var body bytes.Buffer
	if r.ContentLength > 0 {
		body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	n, err := body.ReadFrom(io.LimitReader(in, limit+1))
	if err != nil {
		return nil, bodyError(err)
	}
	if n > limit {
		return nil, tooLarge()
	}
	return body.Bytes(), nil
}

func tooLarge() error { return Errorf(http.StatusRequestEntityTooLarge, "Request Entity Too Large") }

func bodyError(err error) error {
	var over *http.MaxBytesError
	if errors.As(err, &over) {
		return tooLarge()
	}
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return Errorf(http.StatusBadRequest, "Bad Request: the body is truncated or is not gzip")
	}
	return Errorf(http.StatusBadRequest, "Bad Request: the body cannot be read")
}
