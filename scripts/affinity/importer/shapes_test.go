package importer

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
)

// objectsOf returns the objects of a source as lines, and its notes.
func objectsOf(t *testing.T, f ObjectForm, text string) (lines, notes []string) {
	t.Helper()
	s := NewSource("x", iotest.HalfReader(strings.NewReader(text)), -1)
	s.AsObjects(f)
	for {
		l, err := s.next()
		switch {
		case errors.Is(err, io.EOF):
			return lines, s.notes()
		case err != nil:
			return append(lines, err.Error()), s.notes()
		case l.reason() != "":
			lines = append(lines, fmt.Sprintf("%d fault %s", l.number, l.reason()))
		default:
			lines = append(lines, fmt.Sprintf("%d %s", l.number, l.text))
		}
	}
}

func TestDelimiters(t *testing.T) {
	const seen = ` {"eventType":"view","eventName":"V","userToken":"u","filters":["color:Red"],"timestamp":1569888000000}`
	for name, c := range map[string]struct {
		form Form
		text string
		want []string
	}{
		"semicolons of European Excel": {Form{}, "\ufeffeventType;eventName;userToken;filters;timestamp\r\nview;V;u;color:Red;2019-10-01\r\n", []string{"2" + seen}},
		"tabs":                         {Form{}, "eventType\teventName\tuserToken\tfilters\ttimestamp\nview\tV\tu\t\"color:Red\"\t2019-10-01\n", []string{"2" + seen}},
		"empty cells between tabs":     {Form{}, "eventType\teventName\tuserToken\tindex\tfilters\ttimestamp\nview\tV\tu\t\tcolor:Red\t2019-10-01\n", []string{"2" + seen}},
		"semicolons in quoted cells":   {Form{}, "eventType;eventName;userToken;\"filters\";timestamp\nview;V;u;\"color:a;b,\";2019-10-01\n", []string{strings.Replace("2"+seen, "color:Red", "color:a;b,", 1)}},
		"a line that says it":          {Form{}, "sep=;\r\neventType;eventName;userToken;filters;timestamp\r\nview;V;u;color:Red;2019-10-01\r\n", []string{"3" + seen}},
		"another one, given":           {Form{Delimiter: '|'}, "eventType|eventName|userToken|filters|timestamp\nview|V|u|color:Red|2019-10-01\n", []string{"2" + seen}},
		"names that hold another one":  {Form{Columns: map[string]string{"filters": "values, all"}}, "eventType;eventName;userToken;values, all;timestamp, UTC\nview;V;u;color:Red;x\n", []string{`2 {"eventType":"view","eventName":"V","userToken":"u","filters":["color:Red"]}`}},
		"a stray quote": {Form{}, "eventType;eventName;userToken;filters;timestamp\nview;V;a;\"color:Red;2019-10-01\nview;V;u;color:Red;2019-10-01\n",
			[]string{"2 fault a quote begins cell 4 of the row, and no quote ends it: write \"\" for a quote in a quoted cell", "3" + seen}},
		"a column that is missing": {Form{}, "Art;Kunden-Nr\n1;2\n", []string{"x: no column holds eventName or eventType: name one with --map eventType=COLUMN; the columns are Art, Kunden-Nr"}},
		"a name for a shell":       {Form{}, "event type;user's id;x\n", []string{"x: no column holds eventName or eventType: name one with --map 'eventType=event type'; the columns are event type, user's id, x"}},
		"none that is known":       {Form{}, "eventType/userToken\n", []string{"x: no column holds eventName or eventType: name one with --map eventType=COLUMN; the only column is eventType/userToken: --delimiter says what separates columns; JSON begins with { or ["}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, all(t, c.form, c.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestIDsThatAreNumbers(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"rows of Postgres":    {`{"event_type":"view","event_name":"V","user_token":4712,"object_id":99}`, `{"eventName":"V","eventType":"view","objectIDs":["99"],"userToken":"4712"}`},
		"names of the engine": {`{"eventType":"view","eventName":"V","userToken": 4712,"objectIDs":["a"]}`, `{"eventName":"V","eventType":"view","objectIDs":["a"],"userToken":"4712"}`},
		"a list":              {`{"eventType":"view","eventName":"V","userToken":"u","objectIDs": [ "a", 7, 8.0, "9.0" ]}`, `{"eventName":"V","eventType":"view","objectIDs":["a","7","8","9.0"],"userToken":"u"}`},
		"of pandas":           {`{"eventType":"view","eventName":"V","userToken":71.0,"objectIDs":123.0,"eventId":5}`, `{"eventId":"5","eventName":"V","eventType":"view","objectIDs":["123"],"userToken":"71"}`},
		"a fraction":          {`{"eventType":"view","eventName":"V","userToken":-1.5,"objectIDs":["a"]}`, `{"eventName":"V","eventType":"view","objectIDs":["a"],"userToken":"-1.5"}`},
		"cells of pandas":     {"event_type,event_name,user_token,object_ids\nview,V,71.0,123.0|1.5|v1.0\n", `{"eventType":"view","eventName":"V","userToken":"71","objectIDs":["123","1.5","v1.0"]}`},
		"who had signed in":   {"eventType,userToken,authenticatedUserToken,objectIDs\nview,u,71.0,a\n", `{"eventType":"view","eventName":"view","userToken":"u","authenticatedUserToken":"71","objectIDs":["a"]}`},
		"texts stay":          {`{"eventType":"view","eventName":"V","userToken":"71","objectIDs":["123.0"]}`, `{"eventType":"view","eventName":"V","userToken":"71","objectIDs":["123.0"]}`},
	} {
		got := all(t, Form{}, c.text)
		if _, text, _ := strings.Cut(strings.Join(got, ";"), " "); text != c.want {
			t.Errorf("%s: %q, want %s", name, got, c.want)
		}
	}
	for text, want := range map[string]string{
		`{"objectID":99.0,"size":7.0}`: `1 {"objectID":"99","size":7.0}`, `{"objectID":99,"size":7.0}`: `1 {"objectID":99,"size":7.0}`, `{"objectID":"99.0"}`: `1 {"objectID":"99.0"}`,
		"objectID,size\n99.0,7\n": `2 {"objectID":"99","size":7}`,
	} {
		if got, _ := objectsOf(t, ObjectForm{}, text); strings.Join(got, ";") != want {
			t.Errorf("%s: %q, want %s", text, got, want)
		}
	}
}

func TestPathsOfJSON(t *testing.T) {
	const ga4 = `{"event_date":"20261120","event_timestamp":"1795255200000123","event_name":"view_item","user_pseudo_id":"1234567890.1609459200",` +
		`"event_params":[{"key":"ga_session_id","value":{"int_value":"42"}},{"key":"term","value":{"string_value":"shoes"}}],"items":[{"item_id":"SKU_1"},{"item_id":"SKU_2"},{"item_id":null}],"geo":{"city":"x"}}`
	columns := func(pairs ...string) Form {
		f := Form{Types: map[string]string{"view_item": "view"}, Columns: map[string]string{}}
		for _, pair := range pairs {
			field, path, _ := strings.Cut(pair, "=")
			f.Columns[field] = path
		}
		return f
	}
	ids := make([]string, 45)
	for i := range ids {
		ids[i] = fmt.Sprintf(`{"id":%d}`, i)
	}
	for name, c := range map[string]struct {
		form Form
		text string
		want []string
	}{
		"GA4 rows": {columns("userToken=user_pseudo_id", "timestamp=event_timestamp", "objectIDs=items[].item_id", "eventId=event_params[key=ga_session_id].value.int_value"), ga4,
			[]string{`1 {"eventId":"42","eventName":"view_item","eventType":"view","objectIDs":["SKU_1","SKU_2"],"timestamp":"1795255200000123","userToken":"1234567890.1609459200"}`}},
		"a choice among elements": {columns("userToken=user_pseudo_id", "objectIDs=event_params[key=term].value.string_value"), ga4,
			[]string{`1 {"eventName":"view_item","eventType":"view","objectIDs":["shoes"],"userToken":"1234567890.1609459200"}`}},
		"lists without brackets, a list of texts": {columns("userToken=user.id", "objectIDs=order.lines.sku"), `{"eventType":"view","eventName":"V","user":{"id":7},"order":{"lines":[{"sku":["a","b"]},{"sku":"c"}]},"filters":null}`,
			[]string{`1 {"eventName":"V","eventType":"view","filters":null,"objectIDs":["a","b","c"],"userToken":"7"}`}},
		"names with points": {columns("userToken=user.id"), `{"eventType":"view","eventName":"V","user.id":"u","objectIDs":["1"]}`,
			[]string{`1 {"eventName":"V","eventType":"view","objectIDs":["1"],"userToken":"u"}`}},
		"more objects than an event may have": {columns("objectIDs=items.id"), `{"eventType":"view","eventName":"V","userToken":"u","items":[` + strings.Join(ids, ",") + `]}`,
			[]string{`1 {"eventName":"V","eventType":"view","objectIDs":["0","1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17","18","19"],"userToken":"u"}`,
				`1 {"eventName":"V","eventType":"view","objectIDs":["20","21","22","23","24","25","26","27","28","29","30","31","32","33","34","35","36","37","38","39"],"userToken":"u"}`,
				`1 {"eventName":"V","eventType":"view","objectIDs":["40","41","42","43","44"],"userToken":"u"}`}},
		"a path that leads to nothing":   {columns("userToken=user_id"), ga4, []string{"1 fault userToken is missing: --map userToken=user_id leads to nothing here"}},
		"a path that leads to an object": {columns("objectIDs=items"), ga4, []string{"1 fault --map objectIDs=items leads to an object: go on to one of its members, as in items[].item_id"}},
		"a path that is none":            {columns("objectIDs=items[.id"), ga4, []string{"x: --map objectIDs=items[.id: a path is written as in items[].item_id, or as in event_params[key=term].value.string_value"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, all(t, c.form, c.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, text := range []string{"", ".", "a.", ".a", "a[", "a[]b", "a[=1]", "a[x]", "a..b"} {
		if p, ok := parsePath(text); ok {
			t.Errorf("%q is the path %v", text, p)
		}
	}
}

func TestTokensThatAreNone(t *testing.T) {
	f := Form{HashTokens: true, Columns: nil}
	for _, id := range []string{"ann@example.com", "auth0|5f7c", "us-east-1:0b1a", "1234567890.1609459200", "gid://shopify/Customer/1", "71", "ann"} {
		want := event.HashToken(id)
		for _, text := range []string{
			`{"eventType":"view","eventName":"V","userToken":"` + id + `","objectIDs":["1"]}`,
			`{"eventType":"view","eventName":"V","userToken":"u","authenticatedUserToken":"` + id + `","objectIDs":["1"]}`,
			`{"event_type":"view","event_name":"V","user_token":"` + id + `","object_id":"1"}`,
			`{"type":"track","event":"Product Viewed","userId":"` + id + `","properties":{"sku":"1"}}`,
			"eventType,userToken,objectIDs\nview," + id + ",1\n",
			"eventType,userToken,authenticated_user_token,objectIDs\nview,u," + id + ",1\n",
			`{"eventType":"view","eventName":"V","userToken":"u","authenticated_user_token":"` + id + `","objectIDs":["1"]}`,
		} {
			if got := strings.Join(all(t, f, text), ";"); !strings.Contains(got, `ser`) || !strings.Contains(got, `"`+want+`"`) || strings.Contains(got, `"`+id+`"`) {
				t.Errorf("%s: %s, want the token %s", text, got, want)
			}
		}
	}
	for _, text := range []string{`{"eventType":"view","eventName":"V","userToken":"","objectIDs":["1"]}`, `{"exportedEvent":{"event":{"userToken":"a@b"}}}`} {
		if got := strings.Join(all(t, f, text), ";"); len(got) > len(text)+2 {
			t.Errorf("%s becomes %s", text, got)
		}
	}
}

func TestObjectsOverSeveralLines(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"of jq":             {"{\n  \"a\": [\n    1\n  ],\n  \"eventType\": \"view\"\n}\n{\n  \"eventType\": \"view\"\n}\n", []string{`1 {"a":[1],"eventType":"view"}`, `7 {"eventType":"view"}`}},
		"of tabs and CRLF":  {"{\r\n\t\"eventType\": \"view\"\r\n}\r\n", []string{`1 {"eventType":"view"}`}},
		"among others":      {"{\"eventType\":\"view\"}\n\n{\n \"eventType\":\"view\"}\n{\"eventType\":\"view\"}\n", []string{`1 {"eventType":"view"}`, "3 fault an object begins here, and no line } ends it", `5 {"eventType":"view"}`}},
		"without an end":    {"{\n  \"a\": 1\n", []string{"1 fault an object begins here, and no line } ends it"}},
		"a brace alone":     {"{\n{\"eventType\":\"view\"}\n{\n{\n  \"eventType\": \"view\"\n}\n", []string{"1 fault an object begins here, and no line } ends it", `2 {"eventType":"view"}`, "3 fault an object begins here, and no line } ends it", `4 {"eventType":"view"}`}},
		"no JSON within":    {"{\n  nonsense\n}\n{\"eventType\":\"view\"}\n", []string{"1 fault lines 1 to 3 are no JSON object: jsontext: invalid character 'n' at start of string (expecting '\"') after offset 4", `4 {"eventType":"view"}`}},
		"no UTF-8 within":   {"{\n  \"a\": \"Caf\xe9 br\xfbl\xe9\"\n}\n", []string{"1 fault not valid UTF-8: it is probably WINDOWS-1252, which `iconv -f WINDOWS-1252 -t UTF-8 FILE` converts"}},
		"after blank lines": {"\n \n[{\"eventType\":\n\"view\"}]", []string{`1 {"eventType":"view"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, all(t, Form{}, c.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestKindsThatAreLeftOut(t *testing.T) {
	f := Form{Types: map[string]string{"cart": "click", "scroll": Skip, "view": "conversion", AnyKind: Skip}}
	text := "eventType,eventName,userToken,filters\ncart,,u,a:b\nscroll,,u,a:b\nother,,u,a:b\nclick,x,u,a:b\nview,x,u,a:b\n,click,u,a:b\n,other,u,a:b\n"
	want := []string{
		`2 {"eventType":"click","eventName":"cart","userToken":"u","filters":["a:b"]}`, "3 skipped", "4 skipped",
		`5 {"eventType":"click","eventName":"x","userToken":"u","filters":["a:b"]}`, `6 {"eventType":"conversion","eventName":"x","userToken":"u","filters":["a:b"]}`,
		`7 {"eventType":"click","eventName":"click","userToken":"u","filters":["a:b"]}`, "8 skipped",
	}
	if diff := cmp.Diff(want, all(t, f, text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	track := `{"type":"track","event":"%s","userId":"u","properties":{"sku":"1"}}`
	want = []string{"1 skipped", `2 {"eventType":"view","eventName":"Product Viewed","userToken":"u","objectIDs":["1"]}`, "3 skipped"}
	f.Types["Cart Viewed"] = Skip
	if diff := cmp.Diff(want, all(t, f, fmt.Sprintf(track+"\n"+track+"\n"+track, "Cart Viewed", "Product Viewed", "Signed Up"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGuessesOfKinds(t *testing.T) {
	for name, want := range map[string]string{
		"view_item": "view", "view_item_list": "view", "select_item": "click", "add_to_cart": "click", "addtocart": "click", "begin_checkout": "click", "purchase": "conversion",
		"transaction": "conversion", "Order Completed": "conversion", "order": "conversion", "remove_from_cart": "skip", "Song Played": "click", "Article Read": "view",
	} {
		k := Kind{Name: name}
		if got := k.guess(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for k, want := range map[*Kind]string{
		{Name: "Signed Up", Lines: 1, Guess: "click"}:               `"Signed Up" is no type of event (1 line): say which it is, such as --event 'Signed Up=click'`,
		{Name: "page_view", Lines: 9, Guess: "skip", aimless: true}: `"page_view" is no type of event (9 lines without objects and filters): --event page_view=skip leaves them out`,
		{Name: "a=b", Lines: 2, Guess: "view"}:                      `"a=b" is no type of event (2 lines): give these lines an event_type of view, click or conversion`,
		{Name: "$(rm -rf /)'", Lines: 2, Guess: "view"}:             `"$(rm -rf /)'" is no type of event (2 lines): say which it is, such as --event '$(rm -rf /)'\''=view'`,
	} {
		if got := k.text(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestCatalogTables(t *testing.T) {
	for name, c := range map[string]struct {
		form  ObjectForm
		text  string
		want  []string
		notes []string
	}{
		"of European Excel": {ObjectForm{Columns: map[string]string{"objectID": "Artikel #", "price": "Preis", "tags[]": "Tags"}},
			"Artikel #;Name;Preis;Tags\r\n1;\"Schuh, rot\";59,90;neu|Sale | \r\n2;Hemd;1.299,00;\r\n3;;-7;\"a\"\r\n",
			[]string{`2 {"objectID":"1","Name":"Schuh, rot","price":59.90,"tags":["neu","Sale"]}`, `3 {"objectID":"2","Name":"Hemd","price":1299.00}`, `4 {"objectID":"3","price":-7,"tags":["a"]}`},
			[]string{`column "Preis": decimal commas are read, such as 59,90`}},
		"with its own names":           {ObjectForm{}, "object_id,brand,weight\n007,Acme,1.5\n8.0,\"5\"\" pipe\",2\n", []string{`2 {"objectID":"007","brand":"Acme","weight":1.5}`, `3 {"objectID":"8","brand":"5\" pipe","weight":2}`}, nil},
		"texts that look like numbers": {ObjectForm{}, "objectID,zip,size\na,01234,37\nb,23456,S\n", []string{`2 {"objectID":"a","zip":"01234","size":"37"}`, `3 {"objectID":"b","zip":"23456","size":"S"}`}, nil},
		"cells that are no numbers": {ObjectForm{}, "objectID;price\n" + strings.Repeat("a;12,50\n", 18) + "b;auf Anfrage\nc;$12\n",
			append(repeated(18, `{"objectID":"a","price":12.50}`), `20 {"objectID":"b","price":"auf Anfrage"}`, `21 {"objectID":"c","price":"$12"}`),
			[]string{`column "price": decimal commas are read, such as 12,50`, `column "price": 2 cells are no numbers and stay texts, such as "auf Anfrage" in line 20`}},
		"both forms": {ObjectForm{}, "objectID;price\na;12,50\nb;12.50\n", []string{`2 {"objectID":"a","price":"12,50"}`, `3 {"objectID":"b","price":"12.50"}`}, []string{`column "price" holds 12,50 and 12.50: its cells stay texts`}},
		"unclear ones": {ObjectForm{}, "objectID;price\na;1,299\nb;7\n", []string{`2 {"objectID":"a","price":"1,299"}`, `3 {"objectID":"b","price":"7"}`},
			[]string{`column "price" holds 1,299, which may have a decimal comma or not: its cells stay texts`}},
		"thousands":                  {ObjectForm{}, "objectID\tprice\na\t1.299\nb\t1 299,50\nc\t1\u00a0000\nd\t0,5\n", []string{`2 {"objectID":"a","price":1299}`, `3 {"objectID":"b","price":1299.50}`, `4 {"objectID":"c","price":1000}`, `5 {"objectID":"d","price":0.5}`}, []string{`column "price": decimal commas are read, such as 1 299,50`}},
		"a cell over lines":          {ObjectForm{}, "objectID,text\na,\"one, two\nthree, four\n\"\nb,x\n", []string{`2 {"objectID":"a","text":"one, two\nthree, four"}`, `5 {"objectID":"b","text":"x"}`}, nil},
		"bad rows":                   {ObjectForm{}, "objectID,text\na\n,x\nb,y\n", []string{"2 fault the row has 1 cells, and the line of names has 2", `3 {"text":"x"}`, `4 {"objectID":"b","text":"y"}`}, nil},
		"no id":                      {ObjectForm{}, "id;name\n1;x\n", []string{"x: no column holds objectID: name one with --map objectID=id; the columns are id, name. A catalog is a table, or objects of JSON, one a line, each with an objectID"}, nil},
		"a name twice":               {ObjectForm{Columns: map[string]string{"name": "b"}}, "objectID,name,b\n", []string{`x: two columns are the attribute "name": give one another name with --map; the columns are objectID, name, b`}, nil},
		"one column for two":         {ObjectForm{Columns: map[string]string{"objectID": "id", "sku": "id", "other": "id"}}, "id;b\n1;x\n", []string{`2 {"objectID":"1","other":1,"sku":1,"b":"x"}`}, nil},
		"names with points":          {ObjectForm{Columns: map[string]string{"objectID": "maker.id"}}, `{"maker.id":7,"b":"x"}`, []string{`1 {"b":"x","objectID":"7"}`}, nil},
		"a column that is not there": {ObjectForm{Columns: map[string]string{"objectID": "sku"}}, "a,b\n", []string{"x: --map objectID=sku: the columns are a, b"}, nil},
		"JSON with other names": {ObjectForm{Columns: map[string]string{"objectID": "sku", "brand": "maker.name", "tags[]": "tag"}}, `{"sku":7,"maker":{"name":"Acme"},"tag":"x","n":null}` + "\n{}\n",
			[]string{`1 {"brand":"Acme","maker":{"name":"Acme"},"n":null,"objectID":"7","tags":["x"]}`, `2 {}`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, notes := objectsOf(t, c.form, c.text)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.notes, notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

// repeated returns a line for each of n rows behind the line of names.
func repeated(n int, text string) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf("%d %s", i+2, text))
	}
	return lines
}

// A number that a column of decimal commas holds is the number that was written, whatever
// stands between its thousands.
func TestDecimalCommasKeepNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		group := rapid.SampledFrom([]string{"", ".", " ", "\u00a0", "\u202f"}).Draw(t, "between thousands")
		var text strings.Builder
		text.WriteString("objectID;n\nfirst;0,5\n")
		want := []string{`2 {"objectID":"first","n":0.5}`}
		for i := range rapid.IntRange(1, 30).Draw(t, "rows") {
			whole := rapid.Int64Range(0, 999_999_999_999).Draw(t, "whole")
			decimals := rapid.StringMatching(`([0-9]{1,4})?`).Draw(t, "decimals")
			plain := fmt.Sprint(whole)
			written := plain
			for at := len(plain) - 3; at > 0; at -= 3 {
				written = written[:at] + group + written[at:]
			}
			if decimals != "" {
				written, plain = written+","+decimals, plain+"."+decimals
			}
			fmt.Fprintf(&text, "r%d;%s\n", i, written)
			want = append(want, fmt.Sprintf(`%d {"objectID":"r%d","n":%s}`, i+3, i, plain))
		}
		s := NewSource("x", strings.NewReader(text.String()), -1)
		s.AsObjects(ObjectForm{})
		for _, w := range want {
			l, err := s.next()
			if got := fmt.Sprintf("%d %s", l.number, l.text); got != w || err != nil {
				t.Fatalf("%s, %v; want %s", got, err, w)
			}
		}
	})
}
