package profiles

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/web/httpapi"
)

func TestUserToken(t *testing.T) {
	const message = "UserToken must contain only alphanumeric, equal, plus, slash, hyphen, or underscore characters, and be between 1 and 129 characters long"
	for token, ok := range map[string]bool{
		"abc": true, "a/b+c=": true, strings.Repeat("a", 129): true,
		"": false, "a,b": false, "a\nb": false, strings.Repeat("a", 130): false,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.SetPathValue("userToken", token)
		got, err := userToken(r)
		if ok && (got != token || err != nil) {
			t.Errorf("%q: %q, error %v", token, got, err)
		}
		if ok {
			continue
		}
		if status, text := httpapi.Status(err); err == nil || status != http.StatusUnprocessableEntity || text != message {
			t.Errorf("%q: %d %s, want 422 %s", token, status, text, message)
		}
	}
}
