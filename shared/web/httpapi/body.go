package httpapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
)

const (
	// BodyWeight is how many bytes a request takes from the process's gate for each
	// byte of its unpacked body: the body itself, what it decodes to, and the
	// messages or rows that the request sends on.
	BodyWeight = 8
	// BodyTime is how long a client may take to send a body.
	BodyTime = 10 * time.Second
	// ahead is how many bytes of memory a body may take ahead of those that have
	// arrived. A Content-Length is only a claim.
	ahead = 64 << 10
)

// ReadBody reads a request's body of at most limit bytes, both before and after
// decompression. It ignores the content type: clients send JSON under many. A byte order
// mark is not a part of the body.
//
// The request holds BodyWeight bytes of the process's gate for each byte of the
// body until it is answered: the bytes themselves as they arrive, the rest once
// all have arrived. A body that takes longer than BodyTime is answered with 408.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	return ReadBodyWithin(w, r, limit, BodyTime)
}

// Decode reads a request's body as ReadBody does, and decodes it.
func Decode[T any](w http.ResponseWriter, r *http.Request, limit int64,
	decode func([]byte) (T, error)) (request T, err error) {
	body, err := ReadBody(w, r, limit)
	if err != nil {
		return request, err
	}
	return decode(body)
}

// ReadBodyWithin is ReadBody with another time for the client to send the body.
func ReadBodyWithin(w http.ResponseWriter, r *http.Request, limit int64, within time.Duration) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLarge()
	}
	zipped := false
	switch encoding := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		zipped = true
	default:
		return nil, Errorf(http.StatusUnsupportedMediaType, "Content-Encoding must be gzip or absent")
	}
	setReadDeadline(w, time.Now().Add(within))
	// One byte more, so that a body of exactly limit bytes passes.
	packed := http.MaxBytesReader(nil, r.Body, limit+1)
	body, err := readArriving(r.Context(), packed, r.ContentLength, limit)
	if err == nil && zipped {
		body, err = unpack(r.Context(), body, limit, within)
	}
	if err == nil {
		// What was taken while the body arrived is a part of it.
		err = admission.Take(r.Context(), (BodyWeight-1)*int64(len(body)))
	}
	if err != nil {
		return nil, bodyError(err, within)
	}
	// The server reads on, to notice a client that goes away. A deadline that passed
	// while the request is handled would look like that.
	setReadDeadline(w, time.Time{})
	return bytes.TrimPrefix(body, []byte(byteOrderMark)), nil
}

// byteOrderMark begins what some programs write as UTF-8.
const byteOrderMark = "\ufeff"

// unpack decompresses a body that has arrived, to at most limit bytes. If they are many,
// it waits for a turn.
func unpack(ctx context.Context, packed []byte, limit int64, wait time.Duration) ([]byte, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	turn, end := admission.Part(ctx)
	defer end()
	return readArriving(ctx, &turnReader{ctx: turn, in: unpacked, wait: wait}, -1, limit)
}

// turnReader waits for a turn before it reads beyond admission.Heavy bytes: to
// decompress them is heavy work. A client that sends slowly must not hold a turn, so
// what it reads has arrived.
type turnReader struct {
	ctx  context.Context
	in   io.Reader
	wait time.Duration
	n    int64
}

func (t *turnReader) Read(p []byte) (n int, err error) {
	if t.n >= admission.Heavy {
		if err := admission.AwaitTurn(t.ctx, t.wait); err != nil {
			return 0, err
		}
	}
	n, err = t.in.Read(p)
	t.n += int64(n)
	return n, err
}

// setReadDeadline limits how long reads from the client's connection wait. Tests
// that call a handler have no connection.
func setReadDeadline(w http.ResponseWriter, at time.Time) {
	_ = http.NewResponseController(w).SetReadDeadline(at)
}

// errTooLarge ends the reading of a body that is larger than its limit.
var errTooLarge = errors.New("larger than the limit")

// readArriving reads at most limit bytes, with memory that grows as they arrive.
// claimed is the number of bytes that the client announced, or -1.
func readArriving(ctx context.Context, in io.Reader, claimed, limit int64) ([]byte, error) {
	var parts [][]byte
	var total int64
	size := int64(4 << 10)
	if claimed >= 0 {
		size = min(claimed+1, ahead) // one more, so that the end shows without another part
	}
	for ended := false; !ended; size = min(4*size, ahead) {
		if err := admission.Take(ctx, size); err != nil {
			return nil, err
		}
		part := make([]byte, size)
		n, err := fill(in, part)
		if ended = errors.Is(err, io.EOF); err != nil && !ended {
			return nil, err
		}
		if total += int64(n); total > limit {
			return nil, errTooLarge
		}
		parts = append(parts, part[:n])
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	body := make([]byte, 0, total)
	for _, part := range parts {
		body = append(body, part...)
	}
	return body, nil
}

// fill reads until the part is full or in ends, which is io.EOF.
func fill(in io.Reader, part []byte) (n int, err error) {
	for n < len(part) && err == nil {
		var more int
		more, err = in.Read(part[n:])
		n += more
	}
	return n, err
}

func tooLarge() error { return Errorf(http.StatusRequestEntityTooLarge, "Request Entity Too Large") }

func bodyError(err error, within time.Duration) error {
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over), errors.Is(err, errTooLarge):
		return tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Errorf(http.StatusRequestTimeout, "Request Timeout: the body did not arrive within %d seconds",
			within/time.Second)
	case errors.Is(err, admission.ErrFull), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("read the body: %w", err)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, io.EOF):
		return Errorf(http.StatusBadRequest, "Bad Request: the body is truncated or is not gzip")
	}
	return Errorf(http.StatusBadRequest, "Bad Request: the body cannot be read")
}
