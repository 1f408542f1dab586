package feed_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/rank/feed"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func TestDecode(t *testing.T) {
	full := feed.Definition{Name: "news", Index: "posts", Date: "meta.date", MaxAgeDays: 30, Where: [][]string{{"categories:News"}, {"a:b", "a:c:d"}},
		Diversity: &strategy.Diversity{Facet: "brand", Lambda: 0.5, MaxPerValue: 2}, Seen: ranking.Demote, Format: feed.WordPress}
	least := feed.Definition{Name: "news", Index: "posts", Date: "date", Seen: ranking.Keep, Format: feed.Records}
	for body, want := range map[string]feed.Definition{
		`{"index":"posts","date":"meta.date","maxAgeDays":30,"where":["categories:News",["a:b","a:c:d"]],
			"diversity":{"facet":"brand","lambda":0.5,"maxPerValue":2},"seen":"demote","format":"wordpress"}`: full,
		`{"index":"posts","date":"date"}`: least,
		`{"index":"posts","date":"date","maxAgeDays":null,"where":null,"diversity":null,"seen":null,"format":null}`: least,
		`{"index":"posts","date":"date","where":[]}`:                                                                least,
	} {
		got, err := feed.Decode("news", []byte(body))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: error %v (-want +got):\n%s", body, err, diff)
		}
		stored, err := got.Encode()
		must.Succeed(t, err)
		want.Version = 7
		again, err := feed.Parse("news", 7, stored)
		if diff := cmp.Diff(want, again); err != nil || diff != "" {
			t.Errorf("stored as %s: error %v (-want +got):\n%s", stored, err, diff)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	with := func(more string) string { return `{"index":"posts","date":"date",` + more + `}` }
	for _, test := range []struct {
		body, want string
		kind       fault.Kind
	}{
		{`{`, "the body is not valid JSON", fault.Malformed},
		{`[]`, "the body must be a JSON object", fault.Malformed},
		{`null`, "the body must be a JSON object, got null", fault.Malformed},
		{"{\"index\":\"\xff\"}", "not valid UTF-8", fault.Malformed},
		{`{"index":"` + strings.Repeat("x", feed.MaxDefinition) + `"}`, "at most 65536 are accepted", fault.TooLarge},
		{`{"date":"date"}`, "index is missing", fault.Invalid},
		{`{"index":"posts"}`, "date is missing", fault.Invalid},
		{`{"index":null,"date":"d"}`, "index must be a string", fault.Invalid},
		{`{"index":"","date":"d"}`, "index must have 1 to 512 bytes", fault.Invalid},
		{`{"index":"posts","date":""}`, "date must have 1 to 256 bytes", fault.Invalid},
		{`{"index":"posts","date":"` + strings.Repeat("d", 257) + `"}`, "date must have 1 to 256 bytes", fault.Invalid},
		{`{"index":"posts","index":"posts","date":"d"}`, `"index" is there twice`, fault.Invalid},
		{with(`"maxAgeDays":0`), "maxAgeDays must be an integer from 1 to 3650, got 0", fault.Invalid},
		{with(`"maxAgeDays":1.5`), "maxAgeDays must be an integer", fault.Invalid},
		{with(`"maxAgeDays":"30"`), `maxAgeDays must be an integer from 1 to 3650, got "30"`, fault.Invalid},
		{with(`"maxAgeDays":3651`), "maxAgeDays must be an integer", fault.Invalid},
		{with(`"where":"a:b"`), "where must be a list of filters", fault.Invalid},
		{with(`"where":["ab"]`), `where[0] must have the form facet:value and at most 2048 bytes, got "ab"`, fault.Invalid},
		{with(`"where":["a:b",":b"]`), "where[1] must have the form facet:value", fault.Invalid},
		{with(`"where":["a:b",["a:"]]`), "where[1] must have the form facet:value", fault.Invalid},
		{with(`"where":["a:b",[]]`), "where[1] must have 1 to 20 filters, got 0", fault.Invalid},
		{with(`"where":[7]`), "where[0] must be a string", fault.Invalid},
		{with(`"where":[[["a:b"]]]`), "where[0] must be a string", fault.Invalid},
		{with(`"where":[` + strings.TrimSuffix(strings.Repeat(`"a:b",`, 11), ",") + `]`), "where has 11 conditions, at most 10 are accepted", fault.Invalid},
		{with(`"where":["a:` + strings.Repeat("b", 2048) + `"]`), "at most 2048 bytes", fault.Invalid},
		{with(`"diversity":{"lamda":1}`), "Unknown field", fault.Invalid},
		{with(`"diversity":{"lambda":7}`), "diversity.lambda", fault.Invalid},
		{with(`"seen":"never"`), `seen must be keep, demote or exclude, got "never"`, fault.Invalid},
		{with(`"format":1`), "format must be a string", fault.Invalid},
		{with(`"format":"xml"`), `format must be records, ids or wordpress, got "xml"`, fault.Invalid},
		{with(`"limit":3`), `Unknown field "limit"`, fault.Invalid},
		{with(`"name":"x"`), `Unknown field "name"`, fault.Invalid},
	} {
		_, err := feed.Decode("news", []byte(test.body))
		var refusal *fault.Error
		if !errors.As(err, &refusal) || refusal.Kind != test.kind || !strings.Contains(refusal.Message, test.want) {
			t.Errorf("%.120s: error %v, want %q (%s)", test.body, err, test.want, test.kind)
		}
	}
}

func TestNames(t *testing.T) {
	const body = `{"index":"posts","date":"date"}`
	for name, good := range map[string]bool{
		"news": true, "A-z_9": true, strings.Repeat("a", 64): true, "": false, strings.Repeat("a", 65): false, "a b": false, "é": false, "a/b": false,
		"suggested": false, "latest": false, "Latest": true, "query": false, "export": false,
	} {
		if _, err := feed.Decode(name, []byte(body)); (err == nil) != good {
			t.Errorf("name %q: error %v", name, err)
		}
	}
}

// A definition that a newer version of the engine stored is read without what this
// version does not know.
func TestParse(t *testing.T) {
	d, err := feed.Parse("news", 3, []byte(`{"index":"posts","date":"date","newer":{"a":1},"seen":"keep","format":"ids"}`))
	if want := (feed.Definition{Name: "news", Version: 3, Index: "posts", Date: "date", Seen: ranking.Keep, Format: feed.IDs}); err != nil || cmp.Diff(want, d) != "" {
		t.Errorf("%+v, error %v", d, err)
	}
	if _, err := feed.Parse("news", 3, []byte(`{"index":7}`)); err == nil || !strings.Contains(fmt.Sprint(err), "news") {
		t.Errorf("error %v, want one that names the feed", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"index":"posts","date":"meta.date","maxAgeDays":30,"where":["categories:News",["a:b"]],"diversity":{"facet":"brand"},"seen":"demote"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := feed.Decode("news", body)
		if err != nil {
			if !errors.As(err, new(*fault.Error)) {
				t.Fatalf("error %v is no fault of the client", err)
			}
			return
		}
		stored, err := d.Encode()
		must.Succeed(t, err)
		again, err := feed.Decode("news", stored)
		if diff := cmp.Diff(d, again); err != nil || diff != "" {
			t.Fatalf("error %v (-want +got):\n%s", err, diff)
		}
	})
}
