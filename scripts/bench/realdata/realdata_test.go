package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/realdata"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

const clickNames = "year;month;day;order;country;session ID;page 1 (main category);page 2 (clothing model);colour;location;model photography;price;price 2;page"

// lines encodes values as the files hold them.
func lines[T any](t *testing.T, values []T) string {
	t.Helper()
	var b bytes.Buffer
	must.Succeed(t, encode(&b, values))
	return b.String()
}

func TestClickstream(t *testing.T) {
	source := clickNames + "\n" +
		"2008;4;1;1;29;1;1;A13;1;5;1;28;2;1\n" +
		"2008;4;1;2;29;1;4;P2;14;6;2;8;1;3\r\n" +
		"2008;4;1;3;29;1;1;A13;1;5;1;28;2;1\n" +
		"2008;8;13;1;29;2;2;A13;1;5;1;28;2;1\n" // one row has another category: most win
	events, objects, err := clickstream(strings.NewReader(source))
	must.Succeed(t, err)
	at := func(month time.Month, day, second int) int64 {
		return time.Date(2008, month, day, 0, 0, second, 0, time.UTC).UnixMilli()
	}
	want := []event{
		{"click", "Product Clicked", "session-1", at(4, 1, 1), []string{"A13"}},
		{"click", "Sale Product Clicked", "session-1", at(4, 1, 2), []string{"P2"}},
		{"click", "Product Clicked Again", "session-1", at(4, 1, 3), []string{"A13"}},
		{"click", "Product Clicked", "session-2", at(8, 13, 1), []string{"A13"}},
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	wantObjects := []any{
		garment{"A13", "trousers", "beige", "28", "20-29", "no", []string{"bottom in the middle", "en face"}, "1"},
		garment{"P2", "sale", "white", "8", "0-9", "yes", []string{"bottom right", "profile"}, "3"},
	}
	if diff := cmp.Diff(wantObjects, objects); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	for bad, want := range map[string]string{
		"":             "read the names of the columns",
		"year;month\n": `no column "day"`,
		clickNames + "\n2008;4;31;1;29;1;1;A13;1;5;1;28;2;1\n": `line 2: day is "31"`,
		clickNames + "\n2008;4;1;x;29;1;1;A13;1;5;1;28;2;1\n":  `line 2: order is "x"`,
		clickNames + "\n2008;4;1;1;29;1;1;A13;15;5;1;28;2;1\n": `line 2: colour is "15"`,
		clickNames + "\n2008;4;1;1;29;1;1;A13;1;5;1;x;2;1\n":   `the price of A13 is "x"`,
		clickNames + "\n2008;4;1;1\n":                          "wrong number of fields",
	} {
		if _, _, err := clickstream(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", bad, err, want)
		}
	}
}

// The real files, taken back to rows of the source, give the same files again.
func TestClickstreamOfRealData(t *testing.T) {
	objects := map[string]garment{}
	var wantObjects, wantEvents strings.Builder
	for line := range realdata.Lines(t, "clickstream", realdata.ObjectsFile) {
		var g garment
		must.Succeed(t, json.Unmarshal(line, &g))
		objects[g.ObjectID] = g
		fmt.Fprintf(&wantObjects, "%s\n", line)
	}
	code := func(column, word string) int {
		at := slices.Index(codes[column], word)
		if at < 0 {
			t.Fatalf("%s has no word %q", column, word)
		}
		return at + 1
	}
	source := bytes.NewBufferString(clickNames + "\n")
	for line := range realdata.Lines(t, "clickstream", realdata.EventsFile) {
		var e event
		must.Succeed(t, json.Unmarshal(line, &e))
		fmt.Fprintf(&wantEvents, "%s\n", line)
		at, g := time.UnixMilli(e.Timestamp).UTC(), objects[e.ObjectIDs[0]]
		order := at.Hour()*3600 + at.Minute()*60 + at.Second()
		fmt.Fprintf(source, "%d;%d;%d;%d;29;%s;%d;%s;%d;%d;%d;%s;%d;%s\n", at.Year(), at.Month(), at.Day(), order,
			strings.TrimPrefix(e.UserToken, "session-"), code(mainCategory, g.Category), g.ObjectID, code("colour", g.Colour), code("location", g.Photo[0]),
			code("model photography", g.Photo[1]), g.Price, code("price 2", g.Above), g.ShopPage)
	}
	same(t, source, clickstream, wantEvents.String(), wantObjects.String())
}

// same converts a source and compares the lines.
func same(t *testing.T, source *bytes.Buffer, convert func(io.Reader) ([]event, []any, error), wantEvents, wantObjects string) {
	t.Helper()
	events, objects, err := convert(source)
	must.Succeed(t, err)
	for what, texts := range map[string][2]string{"events": {wantEvents, lines(t, events)}, "objects": {wantObjects, lines(t, objects)}} {
		want, got := strings.Split(texts[0], "\n"), strings.Split(texts[1], "\n")
		if len(want) != len(got) {
			t.Errorf("%d %s, want %d", len(got), what, len(want))
		}
		for i := range min(len(want), len(got)) {
			if want[i] != got[i] {
				t.Fatalf("%s, line %d:\n%s\nwant\n%s", what, i+1, got[i], want[i])
			}
		}
	}
}

func TestOnlineRetail(t *testing.T) {
	source := "\ufeffInvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country\n" +
		"536365,85123A,WHITE HANGING HEART T-LIGHT HOLDER,6,12/1/2010 8:26,2.55,17850,United Kingdom\n" +
		"536365,71053,\"WHITE METAL LANTERN, BIG\",6,12/1/2010 8:26,20,17850.0,United Kingdom\n" +
		"536365,85123A,WHITE HANGING HEART T-LIGHT HOLDER,1,12/1/2010 8:26,2.55,17850,United Kingdom\n" +
		"536366,POST,POSTAGE,1,12/1/2010 8:28,18,17850,United Kingdom\n" +
		"536367,84406B,NOBODY'S,1,12/1/2010 8:34,1,,United Kingdom\n" +
		"C536379,71053,LANTERN,-1,2010-12-01 09:41:00,20,14527,United Kingdom\n"
	events, objects, err := onlineRetail(strings.NewReader(source))
	must.Succeed(t, err)
	at := func(hour, minute int) int64 { return time.Date(2010, 12, 1, hour, minute, 0, 0, time.UTC).UnixMilli() }
	want := []event{
		{"conversion", "Products Purchased", "customer-17850", at(8, 26), []string{"85123A", "71053"}},
		{"conversion", "Order Cancelled", "customer-14527", at(9, 41), []string{"71053"}},
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	wantObjects := []any{
		gift{"71053", "WHITE METAL LANTERN, BIG", []string{"white"}, []string{"metal"}, []string{"big", "lantern", "metal", "white"}, "20 and over"},
		gift{"85123A", "WHITE HANGING HEART T-LIGHT HOLDER", []string{"white"}, nil, []string{"hanging", "heart", "holder", "light", "white"}, "2 to 5"},
	}
	if diff := cmp.Diff(wantObjects, objects); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	many := make([]string, 45)
	for i := range many {
		many[i] = strconv.Itoa(i)
	}
	if parts := split([]event{{ObjectIDs: many}}); len(parts) != 3 || len(parts[2].ObjectIDs) != 5 {
		t.Errorf("45 objects make %d events", len(parts))
	}
	if _, _, err := onlineRetail(strings.NewReader(strings.Replace(source, "12/1/2010 8:26", "yesterday", 1))); err == nil || !strings.Contains(err.Error(), `line 2: invoicedate is "yesterday"`) {
		t.Errorf("a bad time: %v", err)
	}
}

// Names and bands of prices of the real files, taken back to invoices, give the same files
// again: so the words in names are found by the same rules.
func TestOnlineRetailOfRealData(t *testing.T) {
	objects := map[string]gift{}
	var wantObjects, wantEvents strings.Builder
	for line := range realdata.Lines(t, "onlineretail", realdata.ObjectsFile) {
		var g gift
		must.Succeed(t, json.Unmarshal(line, &g))
		objects[g.ObjectID] = g
		fmt.Fprintf(&wantObjects, "%s\n", line)
	}
	prices := map[string]string{"under 1": "0.99", "1 to 2": "1", "2 to 5": "2", "5 to 10": "5", "10 to 20": "10", "20 and over": "20"}
	var source bytes.Buffer
	rows := csv.NewWriter(&source)
	must.Succeed(t, rows.Write(strings.Split("InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country", ",")))
	number, last := 0, event{}
	for line := range realdata.Lines(t, "onlineretail", realdata.EventsFile) {
		var e event
		must.Succeed(t, json.Unmarshal(line, &e))
		fmt.Fprintf(&wantEvents, "%s\n", line)
		if more := len(last.ObjectIDs) == maxNamed && last.UserToken == e.UserToken && last.Timestamp == e.Timestamp && last.EventName == e.EventName; !more {
			number++
		}
		last = e
		invoice := strconv.Itoa(number)
		if e.EventName == "Order Cancelled" {
			invoice = "C" + invoice
		}
		for _, id := range e.ObjectIDs {
			g := objects[id]
			must.Succeed(t, rows.Write([]string{invoice, id, g.Name, "1", time.UnixMilli(e.Timestamp).UTC().Format("1/2/2006 15:04"), prices[g.PriceRange],
				strings.TrimPrefix(e.UserToken, "customer-"), "-"}))
		}
	}
	rows.Flush()
	same(t, &source, onlineRetail, wantEvents.String(), wantObjects.String())
}

// The command writes files that the others read, and refuses a source that is not
// the public one.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "source.csv")
	must.Succeed(t, os.WriteFile(path, []byte(clickNames+"\n2008;4;1;1;29;1;1;A13;1;5;1;28;2;1\n"), 0o600))
	if err := run(shops["clickstream"], path, filepath.Join(dir, "out"), os.Stderr); err == nil || !strings.Contains(err.Error(), "it is another file, or was changed") {
		t.Errorf("a source with another sum: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
		t.Error("a refused source leaves files")
	}
	anySum := shops["clickstream"]
	anySum.sum = ""
	var out bytes.Buffer
	must.Succeed(t, run(anySum, path, filepath.Join(dir, "out"), &out))
	if want := "1 events and 1 objects are in " + filepath.Join(dir, "out") + "\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	for name, s := range shops {
		if _, err := strategy.Decode([]byte(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s.strategy), "}")) + `,"personalizationImpact":50}`)); err != nil {
			t.Errorf("the strategy of %s: %v", name, err)
		}
	}
}
