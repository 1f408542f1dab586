package rank

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// written are bodies as programs write them, whose lists cut reads.
var written = []string{
	`{"userToken":"u","index":"i","objectIDs":["a","b","a","é<&>"],"limit":3}`,
	"{ \"limit\" : 3 ,\r\n\t\"objectIDs\" : [ \"a\" , \"b\" ] , \"userToken\" : \"u\" , \"index\" : \"i\" }\n",
	`{"explain":true,"items":null,"objectIDs":[],"userToken":"u","index":"i"}`,
	`{"diversity":{"facet":"brand", "lambda" : 0.5,"maxPerValue":2},"userToken":"u","index":"i","objectIDs":["a"]}`,
	`{"diversity":{},"userToken":"u","index":"i","objectIDs":["a"]}`,
	`{"exclude":["a","c"],"userToken":"u","index":"i","objectIDs":["a","b"]}`,
	`{"userToken":"u","index":"i","items":[{"id":"a","fields":[{"name":"relevancy","value":-0.25}]},{"id":"b"},{"id":"c","fields":[]},` +
		`{ "id" : "d" , "fields" : [ { "name" : "relevancy" , "value" : 10 } ] } ]}`,
}

// unusual are bodies that the decoder reads alone, or refuses.
var unusual = []string{
	`{"userToken":"u","index":"i","objectIDs":["\u0061","b"]}`,
	`{"userToken":"u","index":"i","items":[{"fields":[{"value":1e3,"name":"relevancy"}],"id":"a"}]}`,
	`{"userToken":"u","index":"i","items":[{"id":"a","fields":null}]}`,
	`{"userToken":"u","index":"i","items":[{"id":"a","fields":[{"name":"relevancy","value":01}]}]}`,
	`{"userToken":"u","index":"i","items":[{"id":"a","fields":[{"name":"relevancy","value":1e999}]}]}`,
	`{"userToken":"u","index":"i","items":[{"id":"a","fields":[{"name":"relevancy","value":NaN}]}]}`,
	`{"userToken":"u","index":"i","objectIDs":["a","b",]}`,
	`{"exclude":["a",],"userToken":"u","index":"i","objectIDs":["a"]}`,
	`{"exclude":["a" "b"],"userToken":"u","index":"i","objectIDs":["a"]}`,
	`{"exclude":["a",7],"userToken":"u","index":"i","objectIDs":["a"]}`,
	`{"userToken":"u","index":"i","objectIDs":["a",""]}`,
	`{"userToken":"u","index":"i","objectIDs":["a"],"items":[]}`,
	`{"userToken":"u","index":"i","objectIDs":["a"],"objectIDs":["b"]}`,
	`{"userToken":"u","index":"i","objectIDs":["a"]} more`,
	`{"userToken":"u","index":"i","objectIDs":["a"],"limit":tru}`,
	`{"userToken":"u","index":"i","limit":1 "objectIDs":["a"]}`,
	`{"userToken":"u\"objectIDs\":[\"a\"]","index":"i"}`,
	`{"userToken":"u","index":{"objectIDs":["a"]}}`,
	`{"diversity":{"lambda":0.5,},"userToken":"u","index":"i","objectIDs":["a"]}`,
	`{"diversity":{"lambda":{}},"userToken":"u","index":"i","objectIDs":["a"]}`,
	`{"diversity":{"lambda":0.5"},"userToken":"u","index":"i","objectIDs":["a"]}`,
	`{"objectIDs":["a"],"index":"i"}`, `{"objectIDs":["a"`, `{"objectIDs":[`, `{"objectIDs"`, `{`, ``, `[]`, `{}`,
	`{"userToken":"u","index":"i","objectIDs":["` + strings.Repeat("a", 600) + `"]}`,
	`{"userToken":"u","index":"i","objectIDs":["a` + strings.Repeat(`","a`, 5000) + `"]}`,
}

func TestCut(t *testing.T) {
	for _, body := range written {
		if _, ok := cut(body, &candidateList{}); !ok {
			t.Errorf("the decoder reads the list of %s", body)
		}
	}
	for _, body := range append(written, unusual...) {
		decodesTheSame(t, body)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		body := []byte(written[random.IntN(len(written))])
		for range random.IntN(3) + 1 {
			at := random.IntN(len(body))
			switch c := `"[]{},:0.-e\ atu` + "\n\x80"; random.IntN(3) {
			case 0:
				body[at] = c[random.IntN(len(c))]
			case 1:
				body = append(body[:at:at], body[at+1:]...)
			case 2:
				body = append(body[:at:at], append([]byte{c[random.IntN(len(c))]}, body[at:]...)...)
			}
		}
		decodesTheSame(t, string(body))
	}
}

func FuzzCut(f *testing.F) {
	for _, body := range append(written, unusual...) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) { decodesTheSame(t, body) })
}

// decodesTheSame checks that a body means the same with its list cut out.
func decodesTheSame(t *testing.T, body string) {
	t.Helper()
	if !utf8.ValidString(body) {
		return
	}
	want, wantErr := decodeText(body, nil, &candidateList{})
	got, err := decode([]byte(body), nil)
	want.list, got.list = nil, nil
	if len(got.Candidates) == 0 && len(want.Candidates) == 0 {
		got.Candidates, want.Candidates = nil, nil
	}
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("%q: error %v, want %v", body, err, wantErr)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(request{}), cmp.Comparer(func(a, b *candidateList) bool { return a == b })); diff != "" && err == nil {
		t.Fatalf("%q (-want +got):\n%s", body, diff)
	}
}
