package client_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/must"
)

// importer accepts lines as the engine does, and refuses a line that says bad.
func importer(t *testing.T, requests *[]int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("index") != "shoes" {
			t.Errorf("request %s", r.URL)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
		*requests = append(*requests, len(lines))
		if slices.Contains(lines, "fatal") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		accepted, refused := 0, []string{}
		for i, line := range lines {
			if line == "bad" {
				refused = append(refused, fmt.Sprintf(`{"line":%d,"message":"bad"}`, i+1))
			} else if line != "" {
				accepted++
			}
		}
		fmt.Fprintf(w, `{"accepted":%d,"received":1,"deleted":2,"outsideRetention":3,"refused":[%s]}`, accepted, strings.Join(refused, ","))
	}
}

func TestImportAll(t *testing.T) {
	lines := make([]string, 4500)
	for i := range lines {
		lines[i] = "{}"
	}
	lines[0], lines[7], lines[2000], lines[4499] = "bad", "", "bad", "bad"
	plain := strings.Join(lines, "\n")
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := io.WriteString(w, plain); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, w.Close())
	for name, in := range map[string]io.Reader{"plain": strings.NewReader(plain), "gzip": &packed} {
		t.Run(name, func(t *testing.T) {
			var requests []int
			c := once(t, importer(t, &requests))
			a, err := c.Events().ImportAll(t.Context(), "shoes", in)
			must.Succeed(t, err)
			if !slices.Equal(requests, []int{2000, 2000, 500}) {
				t.Errorf("lines of the requests: %v", requests)
			}
			want := []api.RefusedLine{{Line: 1, Message: "bad"}, {Line: 2001, Message: "bad"}, {Line: 4500, Message: "bad"}}
			if a.Accepted != 4496 || a.Received != 3 || a.Deleted != 6 || a.OutsideRetention != 9 || !slices.Equal(a.Refused, want) {
				t.Errorf("answer %+v", a)
			}
		})
	}
}

// An import can be ended after any of its requests.
func TestImportEach(t *testing.T) {
	enough, requests, seen := errors.New("enough"), []int{}, []int{}
	var refused []api.RefusedLine
	lines := strings.Repeat("{}\n", 2999) + "bad\n" + strings.Repeat("{}\n", 3000)
	err := once(t, importer(t, &requests)).Events().ImportEach(t.Context(), "shoes", strings.NewReader(lines), func(a api.ImportAnswer, lines int) error {
		seen, refused = append(seen, a.Accepted, lines), append(refused, a.Refused...)
		if lines == 4000 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || !slices.Equal(requests, []int{2000, 2000}) || !slices.Equal(seen, []int{2000, 2000, 1999, 4000}) {
		t.Errorf("%v; lines of the requests %v, accepted and sent %v", err, requests, seen)
	}
	if want := []api.RefusedLine{{Line: 3000, Message: "bad"}}; !slices.Equal(refused, want) {
		t.Errorf("refused %v, want %v", refused, want)
	}
}

func TestImportAllCutsByBytes(t *testing.T) {
	var requests []int
	c := once(t, importer(t, &requests))
	long := strings.Repeat("x", 1_500_000)
	if a, err := c.Events().ImportAll(t.Context(), "shoes", strings.NewReader(strings.Repeat(long+"\n", 5))); err != nil || a.Accepted != 5 {
		t.Errorf("answer %+v, %v", a, err)
	}
	if !slices.Equal(requests, []int{2, 2, 1}) {
		t.Errorf("lines of the requests: %v", requests)
	}
}

func TestImportAllSaysWhatWentIn(t *testing.T) {
	head := strings.Repeat("{}\n", 2000)
	for name, test := range map[string]struct {
		in   io.Reader
		want string
	}{
		"a refusal":      {strings.NewReader(head + "{}\nfatal\n"), "import lines 2001 to 2002: "},
		"a broken input": {io.MultiReader(strings.NewReader(head), broken{}), "read events beyond line 2000: broken"},
		"a line of 9 MB": {strings.NewReader(head + strings.Repeat("x", 9<<20)), "read events beyond line 2000: "},
	} {
		t.Run(name, func(t *testing.T) {
			var requests []int
			a, err := once(t, importer(t, &requests)).Events().ImportAll(t.Context(), "shoes", test.in)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || a.Accepted != 2000 {
				t.Errorf("%d accepted, error %v; want %q", a.Accepted, err, test.want)
			}
		})
	}
	if a, err := once(t, importer(t, new([]int))).Events().ImportAll(t.Context(), "shoes", strings.NewReader("")); err != nil || a.Accepted != 0 {
		t.Errorf("of nothing: %+v, %v", a, err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }
