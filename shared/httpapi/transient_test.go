package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/httpapi"
)

type fault bool

func (fault) Error() string     { return "a fault" }
func (f fault) Transient() bool { return bool(f) }

func TestTransientFaultsAreUnavailable(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{fault(true), http.StatusServiceUnavailable},
		{fault(false), http.StatusInternalServerError},
		{status.Error(codes.Aborted, "conflict"), http.StatusServiceUnavailable},
		{status.Error(codes.NotFound, "no table"), http.StatusInternalServerError},
	} {
		if got, _ := httpapi.Status(fmt.Errorf("read: %w", test.err)); got != test.want {
			t.Errorf("%v: status %d, want %d", test.err, got, test.want)
		}
	}
}
