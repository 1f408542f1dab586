package backend_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/backend"
)

func base() backend.Base {
	return backend.New(slog.New(slog.DiscardHandler), time.Now, nil, config.NewMemory(), config.TTL)
}

func TestFaultsOfBackends(t *testing.T) {
	for code, want := range map[codes.Code]int{
		codes.Unavailable:       http.StatusServiceUnavailable,
		codes.Aborted:           http.StatusServiceUnavailable,
		codes.DeadlineExceeded:  http.StatusServiceUnavailable,
		codes.ResourceExhausted: http.StatusServiceUnavailable,
		codes.Canceled:          http.StatusServiceUnavailable,
		codes.PermissionDenied:  http.StatusInternalServerError,
		codes.NotFound:          http.StatusInternalServerError,
	} {
		rt := base().Router(time.Minute)
		rt.Handle("GET /", func(http.ResponseWriter, *http.Request) error {
			return fmt.Errorf("read: %w", status.Error(code, "a fault"))
		})
		w := httptest.NewRecorder()
		rt.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if retry := w.Header().Get("Retry-After"); w.Code != want || (retry != "") != (want == http.StatusServiceUnavailable) {
			t.Errorf("%v: %d %s, Retry-After %q, want %d", code, w.Code, w.Body, retry, want)
		}
	}
}
