package httpapi_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/web/httpapi"
)

func TestHandleOwn(t *testing.T) {
	rt := httpapi.NewRouter(slog.New(slog.DiscardHandler))
	answer := func(w http.ResponseWriter, _ *http.Request) error {
		return httpapi.WriteJSON(w, http.StatusOK, "answered")
	}
	rt.HandleOwn("GET /none", answer)
	rt.HandleOwn("GET /some", answer, "limit", "halfLife")
	for _, c := range []struct{ url, want string }{
		{"/none", "answered"},
		{"/none?x-algolia-agent=a&X-Algolia-API-Key=k", "answered"},
		{"/none?b=1&a=2", `Unknown query option \"a\": this route takes none`},
		{"/none?x-algolia=1", `Unknown query option \"x-algolia\": this route takes none`},
		{"/some?limit=1&halfLife=3&limit=2", "answered"},
		{"/some?Limit=1", `Unknown query option \"Limit\": this route takes limit, halfLife`},
		{"/some?limit=1&" + strings.Repeat("y", 500) + "=1", strings.Repeat("y", 100) + `\": this route`},
	} {
		w := httptest.NewRecorder()
		rt.ServeHTTP(w, httptest.NewRequest("GET", c.url, nil))
		if refused := c.want != "answered"; refused != (w.Code == http.StatusUnprocessableEntity) || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %s, want %s", c.url, w.Code, w.Body, c.want)
		}
	}
}
