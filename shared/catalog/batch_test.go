package catalog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/fault"
)

// requests is the body of a batch that sends the same action n times.
func requests(action string, n int) []byte {
	list := strings.Repeat(action+",", n)
	return []byte(`{"requests":[` + strings.TrimSuffix(list, ",") + `]}`)
}

// record is an object whose JSON has n bytes.
func record(n int) string {
	const frame = `{"objectID":"1","a":""}`
	return strings.Replace(frame, `"a":"`, `"a":"`+strings.Repeat("x", n-len(frame)), 1)
}

func TestDecodeBatchLimits(t *testing.T) {
	add := func(object string) []byte { return requests(`{"action":"addObject","body":`+object+`}`, 1) }
	named := func(n int) []byte { return add(`{"objectID":"` + strings.Repeat("x", n) + `"}`) }
	tests := []struct {
		name string
		body []byte
		want fault.Kind // 0 for accepted
	}{
		{"record of 100,000 bytes", add(record(100_000)), 0},
		{"record of 100,001 bytes", add(record(100_001)), fault.TooLarge},
		{"record of 100,000 bytes without its whitespace", add(strings.ReplaceAll(record(100_000), ",", " ,\n")), 0},
		{"record that its objectID makes too large", requests(`{"action":"addObject","objectID":"1","body":`+strings.Replace(record(100_000), `"objectID"`, `"x"`, 1)+`}`, 1), fault.TooLarge},
		{"partial update of 100,001 bytes", requests(`{"action":"partialUpdateObject","body":`+record(100_001)+`}`, 1), fault.TooLarge},
		{"objectID of 512 bytes", named(512), 0},
		{"objectID of 513 bytes", named(513), fault.Invalid},
		{"objectID of 513 digits", requests(`{"action":"deleteObject","objectID":`+strings.Repeat("1", 513)+`}`, 1), fault.Invalid},
		{"10,000 actions", requests(`{"action":"clear"}`, 10_000), 0},
		{"10,001 actions", requests(`{"action":"clear"}`, 10_001), fault.Invalid},
		{"body of more than 10 MB", requests(`{"action":"addObject","body":`+record(100_000)+`}`, 100), fault.TooLarge},
		{"body that is not UTF-8", add(`{"objectID":"1","a":"` + "\xff" + `"}`), fault.Malformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			actions, err := catalog.DecodeBatch(tt.body)
			var refusal *fault.Error
			switch {
			case tt.want == 0 && (err != nil || len(actions) == 0):
				t.Errorf("got %d actions, error %v; want it accepted", len(actions), err)
			case tt.want != 0 && (!errors.As(err, &refusal) || refusal.Kind != tt.want):
				t.Errorf("got error %v, want kind %v", err, tt.want)
			case err != nil && len(err.Error()) > 300:
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestDecodeSettingsLimits(t *testing.T) {
	put := func(n, length int) []byte {
		entry := `"` + strings.Repeat("x", length) + `"`
		return []byte(`{"attributesForFaceting":[` + strings.TrimSuffix(strings.Repeat(entry+",", n), ",") + `]}`)
	}
	private := func(n, length int) []byte {
		return bytes.Replace(put(n, length), []byte("attributesForFaceting"), []byte("privateFacets"), 1)
	}
	tests := []struct {
		name string
		body []byte
		want fault.Kind // 0 for accepted
	}{
		{"1,000 entries", put(1000, 1), 0},
		{"1,001 entries", put(1001, 1), fault.Invalid},
		{"entry of 500 bytes", put(1, 500), 0},
		{"entry of 501 bytes", put(1, 501), fault.Invalid},
		{"100 private facets", private(100, 500), 0},
		{"101 private facets", private(101, 1), fault.Invalid},
		{"private facet of 501 bytes", private(1, 501), fault.Invalid},
		{"body of more than 10 MB", append(bytes.Repeat([]byte(" "), 10_000_000), put(1, 1)...), fault.TooLarge},
		{"body that is not UTF-8", []byte(`{"x":"` + "\xff" + `"}`), fault.Malformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			change, err := catalog.DecodeSettings(tt.body)
			var refusal *fault.Error
			switch {
			case tt.want == 0 && (err != nil || change.AttributesForFaceting == nil && change.PrivateFacets == nil):
				t.Errorf("got %+v, error %v; want it accepted", change, err)
			case tt.want != 0 && (!errors.As(err, &refusal) || refusal.Kind != tt.want):
				t.Errorf("got error %v, want kind %v", err, tt.want)
			}
		})
	}
}

// Objects without an ID get different ones.
func TestDecodeBatchMakesIDs(t *testing.T) {
	actions, err := catalog.DecodeBatch(requests(`{"action":"addObject","body":{}}`, 1000))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, a := range actions {
		if seen[a.ObjectID] {
			t.Fatalf("objectID %q was given twice", a.ObjectID)
		}
		seen[a.ObjectID] = true
	}
}

// Real records are not changed by a single byte.
func TestDecodeBatchOfRealRecords(t *testing.T) {
	readData(t, func(record []byte) {
		actions, err := catalog.DecodeBatch(requests(`{"action":"updateObject","body":`+string(record)+`}`, 1))
		if err != nil {
			t.Fatalf("%s: %v", record, err)
		}
		if got := actions[0].Record; !bytes.Equal(got, record) {
			t.Errorf("got %s, want %s", got, record)
		}
	})
}

// A merged record has the same limit as one that is sent whole.
func TestMergeLimit(t *testing.T) {
	const patch = `{"b":1}`
	fits := catalog.MaxRecord - len(`,"b":1`)
	if _, err := catalog.Merge([]byte(record(fits)), []byte(patch)); err != nil {
		t.Errorf("result of %d bytes: %v", catalog.MaxRecord, err)
	}
	_, err := catalog.Merge([]byte(record(fits+1)), []byte(patch))
	var refusal *fault.Error
	if !errors.As(err, &refusal) || refusal.Kind != fault.TooLarge {
		t.Errorf("result of %d bytes: got error %v, want TooLarge", catalog.MaxRecord+1, err)
	}
}

func FuzzDecodeBatch(f *testing.F) {
	f.Add(requests(`{"action":"addObject","body":{"objectID":7,"a.b":[1,{"c":"x"}]}}`, 2))
	f.Add([]byte(`{"requests":[{"action":"partialUpdateObject","objectID":"1","body":{"a":{"_operation":"Add"}}}]}`))
	f.Add([]byte(`{"requests":[{"action":"deleteObject","objectID":"\ud83d"},{"action":"clear"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		actions, err := catalog.DecodeBatch(body)
		if err != nil {
			var refusal *fault.Error
			if !errors.As(err, &refusal) {
				t.Fatalf("error without a kind: %v", err)
			}
			return
		}
		for _, a := range actions {
			if err := checkAction(a); err != nil {
				t.Errorf("%s %q %s: %v", a.Kind, a.ObjectID, a.Record, err)
			}
		}
	})
}

// checkAction checks what callers rely on in an accepted action.
func checkAction(a catalog.Action) error {
	if a.Kind != catalog.Clear && (a.ObjectID == "" || len(a.ObjectID) > catalog.MaxObjectID) {
		return errors.New("bad objectID")
	}
	if a.Kind == catalog.Clear || a.Kind == catalog.DeleteObject {
		if a.Record != nil {
			return errors.New("unexpected record")
		}
		return nil
	}
	if len(a.Record) > catalog.MaxRecord {
		return errors.New("record too large")
	}
	var named struct {
		ObjectID string `json:"objectID"`
	}
	if err := json.Unmarshal(a.Record, &named); err != nil || named.ObjectID != a.ObjectID {
		return fmt.Errorf("record names %q: %w", named.ObjectID, err)
	}
	if _, err := catalog.Filters(a.Record, catalog.Settings{}); err != nil {
		return err
	}
	merged, err := catalog.Merge(nil, a.Record)
	if err != nil {
		return err
	}
	if !bytes.Equal(merged, a.Record) {
		return fmt.Errorf("merging it into nothing gives %s", merged)
	}
	return nil
}

func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":[1, 2]}`), []byte(` {"b":{"c":null},"d":"x"} `))
	f.Add([]byte(`{}`), []byte(`{"\u0061":1}`))
	f.Add([]byte(`{}0`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, old, patch []byte) {
		got, err := catalog.Merge(old, patch)
		if err != nil {
			return
		}
		want := make(map[string]json.RawMessage)
		for _, object := range [][]byte{old, patch} {
			if object == nil {
				continue
			}
			if err := json.Unmarshal(object, &want); err != nil {
				t.Fatalf("merged %q, which is not an object: %v", object, err)
			}
		}
		var merged map[string]json.RawMessage
		if err := json.Unmarshal(got, &merged); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		if !reflect.DeepEqual(merged, want) {
			t.Errorf("got %s, want %s", merged, want)
		}
		again, err := catalog.Merge(got, patch)
		if err != nil || !bytes.Equal(again, got) {
			t.Errorf("merging again gives %s, error %v; want %s", again, err, got)
		}
	})
}
