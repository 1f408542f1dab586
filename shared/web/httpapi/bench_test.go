package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// discarded is an answer that nobody reads.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) WriteHeader(int)             {}
func (d discarded) Write(b []byte) (int, error) { return len(b), nil }

// BenchmarkRouter measures what every request pays before and after its handler. Google's
// load balancer adds the trace.
func BenchmarkRouter(b *testing.B) {
	rt := httpapi.NewRouter(quiet)
	rt.Handle("GET /1/things/{userToken}", func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
	for name, header := range map[string]http.Header{
		"plain": {},
		"trace": {"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "X-Cloud-Trace-Context": {"0af7651916cd43dd8448eb211c80319c/13235353014750950193;o=1"}},
	} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest("GET", "/1/things/ann", nil)
			r.Header = header
			b.ReportAllocs()
			for b.Loop() {
				rt.ServeHTTP(discarded{http.Header{}}, r)
			}
		})
	}
}
