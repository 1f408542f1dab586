package httpapi_test

import (
	"net/http/httptest"
	"testing"

	"github.com/affinityengine/affinity/shared/httpapi"
)

func TestRefuseOptions(t *testing.T) {
	for _, c := range []struct{ url, hint, want string }{
		{"/", "", ""},
		{"/?x-algolia-agent=a&X-Algolia-API-Key=k", "use the body", ""},
		{"/?b=1&a=2", "", `Unknown query option "a"`},
		{"/?x-algolia=1", "use the body", `Unknown query option "x-algolia": use the body`},
	} {
		got := ""
		if err := httpapi.RefuseOptions(httptest.NewRequest("GET", c.url, nil), c.hint); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.url, got, c.want)
		}
	}
}
