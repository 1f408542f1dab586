package schema_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/schema"
)

func TestObjectsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		want := schema.Objects{
			Type: event.Type(text.Draw(t, "type")), Name: text.Draw(t, "name"), Index: text.Draw(t, "index"),
			ObjectIDs: rapid.SliceOfN(text, 0, 20).Draw(t, "ids"),
		}
		b := want.Append([]byte("kept"))[4:]
		got, err := schema.ParseObjects(b)
		for n := range b {
			if _, err := schema.ParseObjects(b[:n]); err == nil {
				t.Errorf("%d of %d bytes are read", n, len(b))
			}
		}
		if _, err := schema.ParseObjects(append(slices.Clone(b), 0)); err == nil {
			t.Error("a byte behind the last id is read")
		}
		clear(b) // the result must not depend on it any more
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	})
}

func TestObjectsOfOriginals(t *testing.T) {
	const at = 1_700_000_000_000
	for _, test := range []struct {
		name, index, sent string
		want              schema.Objects
	}{
		{"one object", "", `"index":"products","objectIDs":["b"]`, schema.Objects{Index: "products", ObjectIDs: []string{"b"}}},
		{"the index of the request", "shoes", `"objectIDs":["b","a","b"]`, schema.Objects{Index: "shoes", ObjectIDs: []string{"b", "a"}}},
		{"filters", "", `"index":"products","filters":["color:Red"]`, schema.Objects{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			raw := fmt.Sprintf(`{"eventType":"click","eventName":"Seen","userToken":"u","timestamp":%d,%s}`, at, test.sent)
			o := schema.Original{ReceivedAt: at, Index: test.index, Event: []byte(raw)}
			got, err := o.Objects()
			test.want.Type, test.want.Name = event.Click, "Seen"
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func FuzzObjects(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{2})
	f.Add(schema.Objects{Type: event.View, Name: "Seen", Index: "products", ObjectIDs: []string{"a", "", "b"}}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := schema.ParseObjects(b)
		if err != nil {
			return
		}
		again, err := schema.ParseObjects(o.Append(nil))
		if diff := cmp.Diff(o, again, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}
