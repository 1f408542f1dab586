package importer

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// randomCSV is a file with good and bad rows, as a generator made it.
type randomCSV struct {
	text, end string
	good      map[string]string // the filter of a good row by its user
	fault     []int             // lines of bad rows
}

var csvNames = []string{"eventType", "eventName", "userToken", "filters", "timestamp", "note"}

// draw makes a file: its columns in any order, its lines with any end, with any delimiter.
func drawCSV(t *rapid.T) randomCSV {
	f := randomCSV{good: map[string]string{}}
	names := rapid.Permutation(csvNames).Draw(t, "names")
	f.end = rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "end")
	var out strings.Builder
	number := 1 // of the next line
	write := func(line, end string) {
		out.WriteString(line + end)
		breaks := strings.NewReplacer("\r\n", "\n", "\r", " ")
		if f.end == "\r" {
			breaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")
		}
		number += strings.Count(breaks.Replace(line+end), "\n")
	}
	write(strings.Join(names, ","), f.end)
	for i := range rapid.IntRange(1, 12).Draw(t, "rows") {
		user := fmt.Sprintf("r%d", i)
		value := "color:" + rapid.SampledFrom([]string{"Red", "5\" pipe", "a \"b\" c", "a, b", "x\ny", "x\r\ny, z", "\n,\"q\"", ",\nz\n\n", "", " é "}).Draw(t, "value")
		cells := map[string]string{"eventType": "view", "eventName": "V", "userToken": user, "timestamp": fmt.Sprint(1_795_175_000_000 + i), "filters": value,
			"note": rapid.SampledFrom([]string{"", "n", "one, two", "a\nb", "a\rb", "\"", "view,V,x", "end\"\n"}).Draw(t, "note")}
		row := make([]string, len(names))
		for at, name := range names {
			row[at] = written(t, cells[name])
		}
		plain := func() { // a row of one line, to be spoiled
			for i, name := range names {
				row[i] = strings.Map(func(r rune) rune {
					if strings.ContainsRune("\r\n,\"", r) {
						return -1
					}
					return r
				}, cells[name])
			}
			f.fault = append(f.fault, number)
		}
		at := rapid.IntRange(0, len(row)-1).Draw(t, "at")
		switch rapid.IntRange(0, 11).Draw(t, "kind") {
		case 0: // a quote that nothing closes; before an empty cell it would close another one
			plain()
			row[at] = `"s` + row[at]
		case 1: // a quote that is closed too early
			plain()
			row[at] = `"` + row[at] + `"x`
		case 2:
			plain()
			row = slices.Delete(row, at, at+1)
		case 3:
			plain()
			row = append(row, "more")
		case 4:
			plain()
			row[slices.Index(names, "eventType")] = "steal"
		case 5: // a row that does not end as the others do
			plain()
			f.fault = f.fault[:len(f.fault)-1]
			other := map[bool]string{true: "\n", false: "\r"}[f.end == "\r"]
			write(strings.Join(row, ","), other)
			f.good[user] = strings.TrimSpace(row[slices.Index(names, "filters")])
			row[slices.Index(names, "userToken")] += "b"
			f.good[user+"b"] = f.good[user]
		case 6:
			if f.end != "\r" {
				row[slices.Index(names, "note")] = "a\rb"
			}
			write(rapid.SampledFrom([]string{"", " ", "  "}).Draw(t, "blank"), f.end)
			fallthrough
		default:
			f.good[user] = strings.TrimSpace(strings.ReplaceAll(value, "\r\n", "\n"))
		}
		write(strings.Join(row, ","), f.end)
	}
	delimiter := rapid.SampledFrom([]string{",", ";", "\t"}).Draw(t, "delimiter")
	swap := strings.NewReplacer(",", delimiter, delimiter, ",")
	f.text = swap.Replace(out.String())
	for user, value := range f.good {
		f.good[user] = swap.Replace(value)
	}
	if rapid.Bool().Draw(t, "no last end") {
		f.text = strings.TrimSuffix(f.text, f.end)
	}
	return f
}

// written writes a cell with quotes if it needs them, or anyhow.
func written(t *rapid.T, cell string) string {
	if strings.ContainsAny(cell, "\r\n,") || strings.HasPrefix(cell, `"`) || rapid.IntRange(0, 3).Draw(t, "quoted") == 0 {
		cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
		return rapid.SampledFrom([]string{"", "", " "}).Draw(t, "before") + cell + rapid.SampledFrom([]string{"", "", " "}).Draw(t, "behind")
	}
	return cell
}

var severalLines = regexp.MustCompile(`\(lines [0-9]+ to ([0-9]+)\)$`)

// A bad row costs itself: every good row of a random file is an event, every bad one is
// named with its line, and nothing else comes out.
func TestBadRowsCostNoOthers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawCSV(t)
		s := NewSource("x", iotest.HalfReader(strings.NewReader(f.text)), -1)
		s.As(Form{})
		good, faults := map[string]string{}, []int{}
		for {
			l, err := s.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v of %q", err, f.text)
			}
			if l.fault != "" {
				last := l.number // two bad rows may be one bad record
				if found := severalLines.FindStringSubmatch(l.fault); found != nil {
					last, _ = strconv.Atoi(found[1])
				}
				for _, line := range f.fault {
					if line >= l.number && line <= last {
						faults = append(faults, line)
					}
				}
				if !slices.Contains(f.fault, l.number) {
					t.Errorf("line %d is refused: %s", l.number, l.fault)
				}
				continue
			}
			var e struct {
				UserToken string   `json:"userToken"`
				Filters   []string `json:"filters"`
			}
			unmarshal(t, l.text, &e)
			good[e.UserToken] = strings.Join(e.Filters, "|")
		}
		for user, filter := range f.good {
			if got, ok := good[user]; !ok || got != filter {
				t.Errorf("the good row %s has the filter %q, %t; want %q", user, got, ok, filter)
			}
			delete(good, user)
		}
		if len(good) > 0 {
			t.Errorf("bad rows are events: %q", good)
		}
		if !slices.Equal(faults, f.fault) {
			t.Errorf("faults are named at lines %v, want %v", faults, f.fault)
		}
		im := NewCheck(io.Discard)
		again := NewSource("x", strings.NewReader(f.text+f.end+f.text[strings.IndexAny(f.text, "\r\n")+1:]), -1)
		again.As(Form{})
		if _, err := im.Events(context.Background(), again, "i"); err != nil {
			t.Errorf("check: %v", err)
		}
		if c := im.Tally(); c.Read != c.Imported+c.Equal+c.Refused || c.Skipped != 0 || c.Imported > len(f.good) {
			t.Errorf("the counts of %d good rows and %d bad ones, and of the same again, are %+v", len(f.good), len(f.fault), c)
		}
		if t.Failed() {
			t.Logf("%q", f.text)
		}
	})
}

func unmarshal(t *rapid.T, text []byte, to any) {
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatalf("%v of %q", err, text)
	}
}

// Files without faults are read as the standard library reads them.
func TestGoodFilesAreReadAsEncodingCSVDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 4).Draw(t, "width")
		cell := rapid.StringOfN(rapid.SampledFrom([]rune("ab\",\n é")), 0, 6, -1).Filter(func(s string) bool { return s != "" && strings.TrimSpace(s) == s })
		want := rapid.SliceOfN(rapid.SliceOfN(cell, width, width), 1, 8).Draw(t, "records")
		var text strings.Builder
		w := csv.NewWriter(&text)
		w.UseCRLF = rapid.Bool().Draw(t, "CRLF")
		if err := w.WriteAll(want); err != nil {
			t.Fatal(err)
		}
		r := rows{delimiter: ',', lines: physical{in: bufio.NewReaderSize(strings.NewReader(text.String()), 16)}, width: width}
		for i, record := range want {
			got, err := r.next()
			if err != nil || got.fault != "" || !slices.Equal(got.cells, record) {
				t.Fatalf("record %d of %q is %q, %q, %v; want %q", i, text.String(), got.cells, got.fault, err, record)
			}
		}
		if _, err := r.next(); !errors.Is(err, io.EOF) {
			t.Fatalf("%v behind the last record", err)
		}
	})
}

// Each stray quote costs its row.
func TestStrayQuotesCostTheirRows(t *testing.T) {
	t.Parallel()
	row := func(user, filter string) string { return "view,V," + user + "," + filter + ",1795175000000" }
	for name, c := range map[string]struct {
		rows []string
		bad  []int // lines
		good string
	}{
		"closed in a later row":     {[]string{row("a", "c:R"), row("b", `"c:R`), row("c", "c:R"), row("d", `"c:B"`), row("e", "c:R")}, []int{3}, "a c d e"},
		"closed at a later comma":   {[]string{row("a", `"c:R`), row("b", "c:R"), row("c", `c:B"`)}, []int{2}, "b c"},
		"closed in the next row":    {[]string{row("a", `"c:R`), row("b", `c:B"`)}, []int{2}, "b"},
		"never closed":              {append([]string{row("a", `"c:R`)}, slices.Repeat([]string{row("b", "c:R")}, 500)...), []int{2}, strings.TrimSpace(strings.Repeat("b ", 500))},
		"never closed, empty cells": {append([]string{row("a", `"c:R`)}, slices.Repeat([]string{row("b", `"",c:R`)}, 3)...), []int{2, 3, 4, 5}, ""},
		"before the first cell":     {[]string{`"` + row("a", "c:R"), row("b", "c:R")}, []int{2}, "b"},
		"in the name":               {[]string{`view,"V,a,c:R,1795175000000`, `view,"V",b,c:R,1795175000000`}, []int{2}, "b"},
		"in the last cell":          {[]string{`view,V,a,c:R,"1795175000000`, row("b", "c:R")}, []int{2}, "b"},
		"closed too early":          {[]string{row("a", `"c:"R`), row("b", "c:R")}, []int{2}, "b"},
		"before a row of lines":     {[]string{row("a", `"c:R`), row("b", "\"c:x\ny\""), row("d", "c:R")}, []int{2}, "b d"},
		"inner quotes stay":         {[]string{row("a", `c:5" pipe`), row("b", `"c:5" pipe"`), row("c", `"c:5"" pipe"`), row("d", `c:5"`)}, nil, "a b c d"},
		"a short row of lines":      {[]string{"view,V,a,\"c:x\ny\"", row("b", "c:R")}, []int{2}, "b"},
		"CRs in quoted cells":       {[]string{row("a", "\"c:x\ry\""), row("b", "c:R")}, nil, "a b"},
		"two CRs before LF":         {[]string{row("a", "c:R") + "\r\r", row("b", `"c:R"`) + "\r\r"}, nil, "a b"},
		"rows of a Mac":             {[]string{row("a", "c:R") + "\r" + row("b", `"c:B"`) + "\r" + row("c", "c:R")}, nil, "a b c"},
	} {
		s := NewSource("x", strings.NewReader("eventType,eventName,userToken,filters,timestamp\n"+strings.Join(c.rows, "\n")+"\n"), -1)
		s.As(Form{})
		var good []string
		var bad []int
		for {
			l, err := s.next()
			if err != nil {
				break
			}
			if l.fault != "" {
				bad = append(bad, l.number)
				continue
			}
			var e struct{ UserToken string }
			if err := json.Unmarshal(l.text, &e); err != nil {
				t.Fatal(err)
			}
			good = append(good, e.UserToken)
		}
		if strings.Join(good, " ") != c.good || !slices.Equal(bad, c.bad) {
			t.Errorf("%s: good %v, bad %v; want %q, %v", name, good, bad, c.good, c.bad)
		}
	}
}

// What a quote that nothing closes has the reader keep is bounded.
func TestMemoryOfRowsIsBounded(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"CRs": "a,b\nx" + strings.Repeat("\r", 100_000), "blank lines": "a,b\n\"x" + strings.Repeat("\n", 100_000), "long lines": "a,b\n\"x" + strings.Repeat("\n"+strings.Repeat("y", 100_000), 200),
	} {
		r := rows{lines: physical{in: bufio.NewReader(strings.NewReader(text))}, delimiter: ',', width: 2}
		kept, lines := 0, 0
		for {
			if _, err := r.next(); err != nil {
				break
			}
			size := 0
			for _, l := range r.ahead {
				size += len(l.text)
			}
			kept, lines = max(kept, size), max(lines, len(r.ahead))
		}
		if kept > maxLine+100_000 || lines > maxCellLines+1 {
			t.Errorf("%s: %d bytes in %d lines are kept", name, kept, lines)
		}
	}
}

// benchmarkLines reads files of events as an import does before it sends them.
func benchmarkLines(b *testing.B, form Form, text string) {
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s := NewSource("x", strings.NewReader(text), -1)
		s.As(form)
		for {
			if _, err := s.next(); err != nil {
				break
			}
		}
	}
}

func BenchmarkReadCSV(b *testing.B) {
	var text strings.Builder
	text.WriteString("event_time,event_type,product_id,user_id,category,price\n")
	for i := range 20_000 {
		fmt.Fprintf(&text, "2019-10-01 00:00:00 UTC,view,%d,%d,electronics.smartphone,35.79\n", 44_600_062+i%500, 541_312_140+i%700)
	}
	benchmarkLines(b, Form{Columns: map[string]string{"timestamp": "event_time", "objectIDs": "product_id", "userToken": "user_id"}}, text.String())
}

func BenchmarkReadQuotedCSV(b *testing.B) {
	var text strings.Builder
	text.WriteString("eventType,eventName,userToken,filters,timestamp\n")
	for i := range 20_000 {
		fmt.Fprintf(&text, "\"view\",\"Product Viewed\",\"u%d\",\"brand:Acme, Inc. \"\"X\"\"\",\"%d\"\n", i%700, 1_795_175_000_000+i)
	}
	benchmarkLines(b, Form{}, text.String())
}

func BenchmarkReadLines(b *testing.B) {
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, `{"eventType":"view","eventName":"Product Viewed","userToken":"u%d","timestamp":%d,"objectIDs":["o%d"]}`+"\n", i%700, 1_795_175_000_000+i, i%500)
	}
	benchmarkLines(b, Form{}, text.String())
}
