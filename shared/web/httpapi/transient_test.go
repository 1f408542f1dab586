package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/affinityengine/affinity/shared/web/httpapi"
)

type domainError bool

func (domainError) Error() string     { return "a fault" }
func (f domainError) Transient() bool { return bool(f) }

func TestTransientFaultsAreUnavailable(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{domainError(true), http.StatusServiceUnavailable},
		{domainError(false), http.StatusInternalServerError},
	} {
		if got, _ := httpapi.Status(fmt.Errorf("read: %w", test.err)); got != test.want {
			t.Errorf("%v: status %d, want %d", test.err, got, test.want)
		}
	}
}
