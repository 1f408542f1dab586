package config_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/config"
)

// Different names are different documents, none of which Firestore refuses: no
// slash, not "." or "..", not __x__, 1 to 1,500 bytes.
func TestDocumentIDs(t *testing.T) {
	name := rapid.OneOf(
		rapid.StringN(0, -1, 512),
		rapid.StringOfN(rapid.SampledFrom([]rune("~/._ps")), 0, 6, 6),
	)
	rapid.Check(t, func(t *rapid.T) {
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		id := config.DocumentID(a)
		if (id == config.DocumentID(b)) != (a == b) {
			t.Errorf("%q and %q: ids %q and %q", a, b, id, config.DocumentID(b))
		}
		if id == "" || len(id) > 1500 || strings.Contains(id, "/") || strings.HasPrefix(id, ".") || strings.HasPrefix(id, "__") {
			t.Errorf("%q: bad id %q", a, id)
		}
	})
}
