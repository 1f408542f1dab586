package rowstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/store/rowstream"
)

// The conformance tests that Google's clients share. They come with the library.
func TestConformance(t *testing.T) {
	c := start(t)
	library, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "cloud.google.com/go/bigtable").Output()
	must.Succeed(t, err)
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(library)), "internal", "conformance", "testdata", "readrows.json"))
	must.Succeed(t, err)
	var file struct {
		ReadRowsTests []struct {
			Description string
			Chunks      []json.RawMessage
			Results     []struct {
				RowKey, FamilyName, Qualifier, Value string
				TimestampMicros                      int64 `json:",string"`
				Error                                bool
			}
		}
	}
	if err := json.Unmarshal(text, &file); err != nil || len(file.ReadRowsTests) < 40 {
		t.Fatalf("%d tests, %v", len(file.ReadRowsTests), err)
	}
	for _, test := range file.ReadRowsTests {
		var chunks []*chunk
		for _, text := range test.Chunks {
			c := &chunk{}
			must.Succeed(t, protojson.Unmarshal(text, c))
			chunks = append(chunks, c)
		}
		var want []row
		fails := false
		for _, r := range test.Results {
			if r.Error {
				fails = true
				continue
			}
			if len(want) == 0 || want[len(want)-1].Key != r.RowKey {
				want = append(want, row{Key: r.RowKey})
			}
			last := &want[len(want)-1]
			last.Cells = append(last.Cells, cell{r.FamilyName, r.Qualifier, r.TimestampMicros, r.Value})
		}
		for name, messages := range map[string][]*message{"in one message": {of(chunks...)}, "one by one": oneByOne(chunks)} {
			got := c.read(t.Context(), c.own, bigtable.RowRange{}, 0, []attempt{{messages: messages}})
			if diff := cmp.Diff(want, got.Rows); diff != "" || (got.Err != nil) != fails {
				t.Errorf("%s, %s: error %v, rows (-want +got):\n%s", test.Description, name, got.Err, diff)
			}
		}
	}
}

func oneByOne(chunks []*chunk) []*message {
	var messages []*message
	for _, c := range chunks {
		messages = append(messages, of(c))
	}
	return messages
}

// A value may be split anywhere, and a row anywhere over messages.
func TestSplits(t *testing.T) {
	c := start(t)
	const value = "0123456789"
	want := []row{
		{"a", []cell{{"f", "q", 1000, value}, {"f", "r", 2000, ""}, {"g", "", 0, value}}},
		{"b", []cell{{"f", "q", 1000, value}}},
	}
	for cut := range len(value) + 1 {
		begin := first("a", "f", "q", value[:cut])
		begin.ValueSize = int32(len(value))
		other := first("", "f", "r", "")
		other.RowKey, other.FamilyName, other.TimestampMicros = nil, nil, 2000
		third := first("a", "g", "", value[:cut])
		third.TimestampMicros, third.ValueSize = 0, int32(len(value))
		middle := &chunk{Value: []byte(value[cut:]), ValueSize: int32(len(value))}
		chunks := []*chunk{
			begin, {Value: []byte(value[cut:])}, other, third, middle, committed(&chunk{}),
			committed(first("b", "f", "q", value)),
		}
		for at := range len(chunks) {
			messages := []*message{of(chunks[:at]...), of(), of(chunks[at:]...)}
			got := c.read(t.Context(), c.own, bigtable.RowRange{}, 0, []attempt{{messages: messages}})
			if diff := cmp.Diff(outcome{Rows: want, Requests: got.Requests}, got, cmp.Comparer(func(a, b error) bool { return a == b }),
				cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Requests" }, cmp.Ignore())); diff != "" {
				t.Fatalf("value split at %d, messages at %d (-want +got):\n%s", cut, at, diff)
			}
		}
		got := c.read(t.Context(), c.own, bigtable.RowRange{}, 0, []attempt{{messages: oneByOne(chunks)}})
		if diff := cmp.Diff(want, got.Rows); diff != "" || got.Err != nil {
			t.Fatalf("value split at %d, chunk by chunk: %v (-want +got):\n%s", cut, got.Err, diff)
		}
	}
}

// A read goes on behind the last row when its answer breaks anywhere, with the rest of
// its limit, and passes on each row once.
func TestBrokenAnswers(t *testing.T) {
	c := start(t)
	half := of(first("c", "f", "q", "half"))
	whole := []*message{of(whole("a")), of(whole("b")), {LastScannedRowKey: []byte("bb")}, half, of(committed(&chunk{Value: []byte("x")}))}
	resumed := []string{"", "a", "b", "bb", "bb", "c"}
	for at := range len(whole) + 1 {
		messages := []attempt{{messages: whole[:at], end: again()}, {end: again()}, {messages: []*message{of(committed(first("x", "f", "q", "")))}}}
		got := c.read(t.Context(), c.own, bigtable.NewRange("a", "z"), 0, messages, bigtable.LimitRows(10))
		want := []string{"", "a", "a b", "a b", "a b", "a b c"}[at]
		if keys(got.Rows) != strings.TrimSpace(want+" x") || got.Err != nil || len(got.Requests) != 3 {
			t.Errorf("broken after %d messages: rows %q, %d requests, %v", at, keys(got.Rows), len(got.Requests), got.Err)
			continue
		}
		for _, again := range got.Requests[1:] {
			r := again.Rows.RowRanges[0]
			from := string(r.GetStartKeyOpen())
			if at == 0 {
				from = strings.TrimPrefix(string(r.GetStartKeyClosed()), "a")
			}
			if from != resumed[at] || string(r.GetEndKeyOpen()) != "z" || again.RowsLimit != int64(10-len(strings.Fields(want))) {
				t.Errorf("broken after %d messages: resumed with %v", at, again)
			}
		}
	}
}

// Reads of a limited number of rows end when these have arrived, however the answer
// ends.
func TestLimits(t *testing.T) {
	c := start(t)
	two := []*message{of(whole("a"), whole("b"))}
	got := c.read(t.Context(), c.own, bigtable.NewRange("a", "z"), 0, []attempt{{messages: two, end: again()}}, bigtable.LimitRows(2))
	if keys(got.Rows) != "a b" || got.Err != nil || len(got.Requests) != 1 {
		t.Errorf("rows %q, %d requests, %v", keys(got.Rows), len(got.Requests), got.Err)
	}
	got = c.read(t.Context(), c.own, bigtable.RowList{"a", "b", "c"}, 0, []attempt{{messages: two, end: again()}})
	if len(got.Requests) != 2 || len(got.Requests[1].Rows.RowKeys) != 1 || string(got.Requests[1].Rows.RowKeys[0]) != "c" {
		t.Errorf("a list of keys goes on as %v", got.Requests)
	}
}

// What a server must not send is an error that no attempt follows.
func TestInvalidAnswers(t *testing.T) {
	c := start(t)
	named := first("a", "f", "q", "")
	named.RowKey = nil
	split := first("a", "f", "q", "v")
	split.ValueSize = 5
	for name, messages := range map[string][]*message{
		"keys out of order":         {of(whole("b"), whole("a"))},
		"a key twice":               {of(whole("b")), of(whole("b"))},
		"a key before the scanned":  {{LastScannedRowKey: []byte("m")}, of(whole("b"))},
		"scanned within a row":      {of(first("a", "f", "q", "")), {LastScannedRowKey: []byte("b")}},
		"no end of the row":         {of(whole("a"), first("b", "f", "q", ""))},
		"another row within a row":  {of(first("a", "f", "q", ""), whole("b"))},
		"no key":                    {of(named)},
		"a cell within a value":     {of(split, whole("a"))},
		"an end within a value":     {of(committed(split))},
		"a reset between rows":      {of(whole("a"), reset())},
		"a family without a column": {of(first("a", "f", "q", ""), &chunk{FamilyName: named.FamilyName})},
	} {
		got := c.read(t.Context(), c.own, bigtable.RowRange{}, 0, []attempt{{messages: messages}})
		if got.Err == nil || len(got.Requests) != 1 || strings.Contains(keys(got.Rows), " ") {
			t.Errorf("%s: rows %q, %d requests, %v", name, keys(got.Rows), len(got.Requests), got.Err)
		}
	}
}

func TestFaults(t *testing.T) {
	c := start(t)
	refused := status.Error(codes.PermissionDenied, "refused by the test")
	got := c.read(t.Context(), c.own, bigtable.RowRange{}, 0, []attempt{{messages: []*message{of(whole("a"))}, end: refused}})
	if keys(got.Rows) != "a" || status.Code(got.Err) != codes.PermissionDenied || len(got.Requests) != 1 {
		t.Errorf("rows %q, %d requests, %v", keys(got.Rows), len(got.Requests), got.Err)
	}
	got = c.read(t.Context(), c.own, bigtable.RowRange{}, 1, []attempt{{messages: []*message{of(whole("a"), whole("b")), of(whole("c"))}}})
	if keys(got.Rows) != "a" || !errors.Is(got.Err, errStop) || len(got.Requests) != 1 {
		t.Errorf("stopped: rows %q, %d requests, %v", keys(got.Rows), len(got.Requests), got.Err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got = c.read(ended, c.own, bigtable.RowRange{}, 0, nil); status.Code(got.Err) != codes.Canceled {
		t.Errorf("without time: %v", got.Err)
	}
}

// The requests are the library's own: the same fields and headers.
func TestRequests(t *testing.T) {
	c := start(t)
	var all []map[string][]string
	for _, client := range []*bigtable.Client{c.own, c.library} {
		got := c.read(t.Context(), client, bigtable.NewRange("a", "b"), 0, nil, bigtable.RowFilter(bigtable.LatestNFilter(1)))
		if got.Err != nil || got.Requests[0].AppProfileId != "batch" || got.Requests[0].Filter == nil {
			t.Fatalf("%v, %v", got.Requests, got.Err)
		}
		header := c.headers[0].Copy()
		// The first is the type without its subtype, which says the same.
		header["content-type"] = []string{strings.TrimSuffix(header["content-type"][0], "+proto")}
		delete(header, "bigtable-client-attempt-epoch-usec")
		all = append(all, header)
	}
	if diff := cmp.Diff(all[1], all[0]); diff != "" || len(all[0]["x-goog-request-params"]) == 0 || len(all[0]["bigtable-features"]) == 0 {
		t.Errorf("headers (-library +own):\n%s", diff)
	}
}

func TestReceived(t *testing.T) {
	c := start(t)
	c.attempts = []attempt{{messages: []*message{of(first("a", "f", "qq", "12345"), committed(first("a", "f", "r", "6")), whole("b"))}}}
	var got []string
	var bytes []int
	err := rowstream.Read(t.Context(), c.own.Open("t"), bigtable.RowRange{}, rowstream.Receiver{
		Row:      func(*rowstream.Row) error { return nil },
		Received: func(key []byte, n int) { got, bytes = append(got, string(key)), append(bytes, n) },
	})
	if err != nil || !slices.Equal(got, []string{"a", "b"}) || !slices.Equal(bytes, []int{11, 4}) {
		t.Errorf("received %q of %d bytes, %v", got, bytes, err)
	}
}
