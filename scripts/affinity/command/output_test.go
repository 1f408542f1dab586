package command

import (
	"bytes"
	"encoding/csv"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

func TestWriteRows(t *testing.T) {
	for documents, want := range map[string]string{
		``:            "",
		`{}`:          "",
		`{"jobs":[]}`: "",
		`{"a":1,"b":"x,\"y\"","c":null,"d":true,"e":["p"],"f":{"g":1}}`:                "a,b,c,d,e,f\n1,\"x,\"\"y\"\"\",,true,\"[\"\"p\"\"]\",\"{\"\"g\"\":1}\"\n",
		`{"total":2,"jobs":[{"id":"x","n":1},{"id":"y","m":2.50}],"others":[{"z":1}]}`: "id,n,m\nx,1,\ny,,2.50\n",
		`[{"a":1},{"a":2}]`:            "a\n1\n2\n",
		"{\"a\":1}\n{\"a\":2,\"b\":3}": "a,b\n1,\n2,3\n",
		`{"names":["a","b"]}`:          "names\n\"[\"\"a\"\",\"\"b\"\"]\"\n",
	} {
		var out bytes.Buffer
		if err := writeRows(&out, []byte(documents)); err != nil || out.String() != want {
			t.Errorf("%s becomes %q, %v; want %q", documents, out.String(), err, want)
		}
	}
	if err := writeRows(&bytes.Buffer{}, []byte("no JSON")); err == nil {
		t.Error("a text that is no JSON is written")
	}
}

// Every text of a value comes back from its cell.
func TestCellsKeepTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ -~\t\nä€]{0,20}`).Draw(t, "text")
		var document, out bytes.Buffer
		if err := cli.PrintJSON(&document, map[string]any{"rows": []map[string]string{{"other": "x", "value": text}}}); err != nil {
			t.Fatal(err)
		}
		if err := writeRows(&out, document.Bytes()); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&out).ReadAll()
		if err != nil || len(rows) != 2 || rows[1][1] != text {
			t.Fatalf("%q becomes %q, %v", text, rows, err)
		}
	})
}
