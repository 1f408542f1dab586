package documents_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/app/documents"
)

// Different names give different ids, and Firestore refuses none of them: an id
// holds no slash, is not ".", ".." or __x__, and has 1 to 1,500 bytes.
func TestDocumentIDs(t *testing.T) {
	name := rapid.OneOf(
		rapid.StringN(0, -1, 512),
		rapid.StringOfN(rapid.SampledFrom([]rune("~/._ps")), 0, 6, 6),
	)
	rapid.Check(t, func(t *rapid.T) {
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		id := documents.ID(a)
		if (id == documents.ID(b)) != (a == b) {
			t.Errorf("%q and %q: ids %q and %q", a, b, id, documents.ID(b))
		}
		if id == "" || len(id) > 1500 || strings.Contains(id, "/") || strings.HasPrefix(id, ".") || strings.HasPrefix(id, "__") {
			t.Errorf("%q: bad id %q", a, id)
		}
	})
}
