package event_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // of the zone that TestMachineZoneChangesNothing sets

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
)

var ten = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC).UnixMilli()

// The table that help texts and documents show says what ParseTime reads.
func TestTimeFormsAreRead(t *testing.T) {
	for _, form := range event.TimeForms {
		for _, text := range form.Examples {
			want := ten
			if len(text) == len(time.DateOnly) && strings.Contains(text, "-") {
				want -= (10 * time.Hour).Milliseconds()
			}
			for _, written := range []string{text, " " + text + "\t"} {
				for name, read := range map[string]func(string) (int64, error){"ParseTime": event.ParseTime, "ParseDate": event.ParseDate} {
					if got, err := read(written); got != want || err != nil {
						t.Errorf("%s(%q) = %s, %v; want %s", name, written, event.FormatTime(got), err, event.FormatTime(want))
					}
				}
			}
		}
	}
}

func TestParseTime(t *testing.T) {
	second := func(text string) int64 {
		at, err := time.Parse(time.RFC3339Nano, text)
		must.Succeed(t, err)
		return at.UnixMilli()
	}
	for text, want := range map[string]string{
		"2026-11-24 05:18:55 -03":             "2026-11-24T08:18:55Z",
		"2026-11-24 05:18:55-0330":            "2026-11-24T08:48:55Z",
		"2026-11-24T05:18:55.123456789+05:45": "2026-11-23T23:33:55.123Z",
		"2026-11-24 05:18:55.9999 UTC":        "2026-11-24T05:18:55.999Z",
		"2026-11-24 05:18:55,5":               "2026-11-24T05:18:55.5Z", // of logs
		"2026-11-24t05:18:55z":                "2026-11-24T05:18:55Z",
		"2026-11-24 05:18:55 +0000 UTC":       "2026-11-24T05:18:55Z", // as Go prints a time
		"2026-11-24T05:18+02":                 "2026-11-24T03:18:00Z",
		"2026-11-24 05:18:55 gmt":             "2026-11-24T05:18:55Z",
		"2026-11-24 05:18:55UTC":              "2026-11-24T05:18:55Z",
		"2024-02-29T23:59:59-00:00":           "2024-02-29T23:59:59Z",
		"1980-01-01":                          "1980-01-01T00:00:00Z",
		"2199-12-31T23:59:59.999Z":            "2199-12-31T23:59:59.999Z",
		"Tue, 24 Nov 2026 05:18:55 GMT":       "2026-11-24T05:18:55Z",
		"Tue, 4 Nov 2026 05:18 -0500":         "2026-11-04T10:18:00Z",
		"24 nov 2026 05:18:55":                "2026-11-24T05:18:55Z",
		"315532800":                           "1980-01-01T00:00:00Z",
		"7258118399.9999":                     "2199-12-31T23:59:59.999Z",
		"7258118399999":                       "2199-12-31T23:59:59.999Z",
		"7258118399999999":                    "2199-12-31T23:59:59.999Z",
		"7258118399999999999":                 "2199-12-31T23:59:59.999Z",
		"1795763133.1":                        "2026-11-27T07:05:33.1Z",
		"1795763133.123456":                   "2026-11-27T07:05:33.123Z",
		"1795763133123.9":                     "2026-11-27T07:05:33.123Z",
		"1.795763133123e9":                    "2026-11-27T07:05:33.123Z",
		"1.795763133123E+12":                  "2026-11-27T07:05:33.123Z",
		"17957631331e-1":                      "2026-11-27T07:05:33.1Z",
		"0001795763133":                       "2026-11-27T07:05:33Z",
	} {
		if got, err := event.ParseTime(text); got != second(want) || err != nil {
			t.Errorf("ParseTime(%q) = %s, %v; want %s", text, event.FormatTime(got), err, want)
		}
	}
}

// unread are texts that no intake reads as the time of an event.
var unread = map[error][]string{
	event.ErrTimeForm: {
		"yesterday", " ", "-", "+", ".", "2026-", "2026-11", "2026-11-2", "2026-13-01", "2026-00-01", "2026-02-29", "2026-11-00", "2026-11-31", "0000-00-00 00:00:00",
		"2026-11-24 05", "2026-11-24 5:18", "2026-11-24 24:00:00", "2026-11-24 05:60", "2026-11-24 05:18:60", "2026-11-24 05:18:55.",
		"2026-11-24 05:18:55 PM", "2026-11-24 05:18 am", "2026-11-24 05:18:55 +2", "2026-11-24 05:18:55 +2:00", "2026-11-24 05:18:55+24:00",
		"2026-11-24 05:18:55+02:60", "2026-11-24 05:18:55+02:", "2026-11-24 05:18:55+02:0", "2026-11-24 05:18:55+020", "2026-11-24 05:18:55 +02:00 1",
		"2026-11-24 Z", "2026-11-24Z", "2026/11/24", "11/24/2026", "24.11.2026", "20261124T051855Z", "Tue Nov 24 05:18:55 2026", "Tue, 24 Nov 2026", "Tue 24 Nov 2026 05:18:55",
		"Die, 24 Nov 2026 05:18:55 GMT", "24 Nov 26 05:18:55", "1e", "1.", "1.e9", "1e99999", "1,795,763,133", "1_795_763_133", "0x6B08AA7D", "NaN", "Infinity", "1795763133 UTC", "true", "[]", "{\"at\":1}",
		"\u0662\u0660\u0662\u0666-11-24", "2026\u201311\u201324", "2026-11-24 05:18:55 \u221203:00",
	},
	event.ErrTimeZone: {
		"2026-11-24 05:18:55 EST", "2026-11-24T05:18:55PST", "2026-11-24 05:18 CET", "2026-11-24 05:18:55.5 IST", "2026-11-24 05:18:55 JST",
		"2026-11-24 05:18:55 Europe/Berlin", "2026-11-24T05:18:55+01:00[Europe/Paris]", "2026-11-24T05:18:55[UTC]", "2026-11-24 05:18:55 GMT+0200",
		"2026-11-24 05:18:55 +0200 CEST", "2026-11-24 05:18:55 +0200 UTC", "2026-11-24 05:18:55 Etc/UTC", "2026-11-24 05:18:55 A", "Tue, 24 Nov 2026 05:18:55 EST", "Tue, 24 Nov 2026 05:18:55 UT",
	},
	event.ErrTimeNumber: {
		"0", "-0", "1", "-1", "2026", "20261124", "202611240518", "20261124051855", "86400", "315532799", "315532799.999", "7258118400", "99999999999", "100000000000", "99999999999999",
		"100000000000000", "99999999999999999", "100000000000000000", "7258118400000000000", "9223372036854775807", "9223372036854775808", "18446744073709551615",
		"-1795763133", "1e300", "1e-9999", "-1e18", "0.0", "1.5", strings.Repeat("9", 1000),
	},
	event.ErrTimeRange: {
		"1970-01-01T00:00:00Z", "1970-01-01", "0001-01-01T00:00:00Z", "1969-12-31 16:00:00 -08", "Thu, 01 Jan 1970 00:00:00 GMT", "1979-12-31T23:59:59.999Z",
		"1980-01-01T00:00:00+00:01", "2200-01-01", "9999-12-31T23:59:59Z", "9999-12-31",
	},
}

func TestUnreadTimesAreRefused(t *testing.T) {
	for want, texts := range unread {
		for _, text := range texts {
			if got, err := event.ParseTime(text); !errors.Is(err, want) {
				t.Errorf("ParseTime(%q) = %s, %v; want %v", text, event.FormatTime(got), err, want)
			}
		}
	}
}

// An object may be older than any event, and its date may lie far ahead.
func TestDatesMayLieFarAway(t *testing.T) {
	for _, text := range []string{"1000-01-01", "1889-06-01", "1965-03-04T10:00:00+01:00", "1970-01-01T00:00:00Z", "9999-12-31", "9999-12-31T23:59:59.999Z"} {
		ms, err := event.ParseDate(text)
		if got := event.FormatTime(ms); err != nil || got[:4] != text[:4] {
			t.Errorf("ParseDate(%q) = %s, %v", text, got, err)
		}
	}
	for text, want := range map[string]error{"0001-01-01T00:00:00Z": event.ErrTimeRange, "9999-12-31T23:59:59-01:00": event.ErrTimeRange,
		"1965": event.ErrTimeNumber, "-150000000": event.ErrTimeNumber, "1965-03-04 10:00 EST": event.ErrTimeZone} {
		if _, err := event.ParseDate(text); !errors.Is(err, want) {
			t.Errorf("ParseDate(%q): %v; want %v", text, err, want)
		}
	}
}

// Numbers and texts of numbers are read alike, and as exact arithmetic reads them.
func TestNumbersAreReadExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,10})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number")
		if rapid.Bool().Draw(t, "likely") {
			text = rapid.StringMatching(`(3[2-9]|[4-9][0-9]|1[0-9]|[2-7][0-9])[0-9]{7,18}(\.[0-9]{1,10})?`).Draw(t, "likely number")
		}
		want, ok := exactly(t, text)
		got, err := event.ParseTime(text)
		if ok != (err == nil) || got != want || err != nil && !errors.Is(err, event.ErrTimeNumber) {
			t.Fatalf("ParseTime(%q) = %d, %v; want %d, %v", text, got, err, want, ok)
		}
	})
}

// exactly reads a number of JSON by the rule of ParseTime in arithmetic without
// rounding.
func exactly(t *rapid.T, text string) (ms int64, ok bool) {
	n, valid := new(big.Rat).SetString(text)
	if !valid {
		t.Fatalf("%q is no number", text)
	}
	power := func(e int64) *big.Rat {
		return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(e), nil))
	}
	switch { // to ms
	case n.Cmp(power(11)) < 0:
		n.Mul(n, power(3))
	case n.Cmp(power(14)) < 0:
	case n.Cmp(power(17)) < 0:
		n.Quo(n, power(3))
	default:
		n.Quo(n, power(6))
	}
	whole := new(big.Int).Quo(n.Num(), n.Denom())
	from, to := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	if !whole.IsInt64() || whole.Int64() < from.UnixMilli() || whole.Int64() >= to.UnixMilli() {
		return 0, false
	}
	return whole.Int64(), true
}

// No text makes ParseTime read what time.Parse reads otherwise.
func TestTimesAreThoseOfTheTimePackage(t *testing.T) {
	layouts := []string{time.RFC3339, time.RFC3339Nano, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05.000", "2006-01-02 15:04 -0700", "2006-01-02 15:04:05-07", time.DateOnly, time.RFC1123Z, "2 Jan 2006 15:04:05 -0700"}
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(event.MinTime, 7_258_118_399_999).Draw(t, "ms")
		zone := time.FixedZone("", 60*rapid.IntRange(-23*60-59, 23*60+59).Draw(t, "offset"))
		layout := rapid.SampledFrom(layouts).Draw(t, "layout")
		text := time.UnixMilli(ms).In(zone).Format(layout)
		want, err := time.Parse(layout, text)
		must.Succeed(t, err)
		got, err := event.ParseTime(text)
		if inside := want.UnixMilli() >= event.MinTime && want.UTC().Year() < 2200; inside && (got != want.UnixMilli() || err != nil) || !inside && !errors.Is(err, event.ErrTimeRange) {
			t.Fatalf("ParseTime(%q) = %s, %v; want %s", text, event.FormatTime(got), err, want.UTC())
		}
	})
}

func FuzzParseTime(f *testing.F) {
	for _, form := range event.TimeForms {
		for _, text := range form.Examples {
			f.Add(text)
		}
	}
	for _, texts := range unread {
		for _, text := range texts {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		ms, err := event.ParseTime(text)
		date, dateErr := event.ParseDate(text)
		switch {
		case err == nil && (ms < event.MinTime || dateErr != nil || date != ms):
			t.Errorf("ParseTime(%q) = %d, ParseDate: %d, %v", text, ms, date, dateErr)
		case err == nil:
			if again, err := event.ParseTime(event.FormatTime(ms)); again != ms || err != nil {
				t.Errorf("ParseTime(%q) = %s, which it reads as %d, %v", text, event.FormatTime(ms), again, err)
			}
		case ms != 0:
			t.Errorf("ParseTime(%q) = %d, %v", text, ms, err)
		}
	})
}

// history decodes an event of history whose timestamp is a value of JSON.
func history(value string) (event.Event, error) {
	raw := fmt.Sprintf(`{"eventType":"view","eventName":"N","index":"i","userToken":"u","timestamp": %s ,"filters":["a:b"]}`, value)
	return event.Decode([]byte(raw), event.Rules{Now: receipt, Ahead: event.MaxAhead, History: true})
}

// An event of history has its time in any form, and is kept with that in ms: the
// log decodes it again as a client's event.
func TestHistoryHasTimesOfAnyForm(t *testing.T) {
	at := receipt.Add(-24 * time.Hour).UnixMilli()
	for _, value := range []string{
		strconv.FormatInt(at, 10), strconv.FormatInt(at*1000, 10), strconv.FormatInt(at/1000, 10) + ".0", fmt.Sprintf("%de-3", at), strconv.Quote(strconv.FormatInt(at*1_000_000, 10)),
		strconv.Quote(event.FormatTime(at)), `"\u0032` + event.FormatTime(at)[1:] + `"`,
		`1795000000000, "timestamp": "` + event.FormatTime(at) + `"`, `"x", "timestamp":` + strconv.FormatInt(at, 10), `null, "timestamp": ` + strconv.FormatInt(at, 10),
	} {
		e, err := history(value)
		if err != nil || e.Time != at || e.Received {
			t.Errorf("timestamp %s: %d, %v, %v; want %d", value, e.Time, e.Received, err, at)
			continue
		}
		again, err := event.Decode(e.Raw, event.Rules{Now: receipt})
		if err != nil || again.Time != at || again.Received || again.ID() != e.ID() {
			t.Errorf("timestamp %s, kept as %s: %d, %v", value, e.Raw, again.Time, err)
		}
	}
}

func TestHistoryWithoutTimeIsReceivedNow(t *testing.T) {
	for _, value := range []string{"null", `""`, `5, "timestamp":null`} {
		e, err := history(value)
		if err != nil || !e.Received || e.Time != receipt.UnixMilli() {
			t.Fatalf("timestamp %s: %+v, %v; want the time of receipt", value, e, err)
		}
		if again, err := event.Decode(e.Raw, event.Rules{Now: receipt}); err != nil || !again.Received {
			t.Errorf("timestamp %s, kept as %s: %v", value, e.Raw, err)
		}
	}
}

// No time of an event of history is replaced by the time of receipt.
func TestHistoryRefusesTimesThatCannotBe(t *testing.T) {
	refused := func(value string, want error) {
		t.Helper()
		e, err := history(value)
		if err == nil || asRefusal(t, err).Message != want.Error() {
			t.Errorf("timestamp %s: %d, %v; want %v", value, e.Time, err, want)
		}
	}
	for _, texts := range unread {
		for _, text := range texts {
			_, want := event.ParseTime(text)
			quoted, err := json.Marshal(text)
			must.Succeed(t, err)
			refused(string(quoted), want)
			if errors.Is(want, event.ErrTimeNumber) {
				refused(text, want)
			}
		}
	}
	for _, value := range []string{"true", "[]", "{}", `["2026-11-20"]`} {
		refused(value, event.ErrTimeForm)
	}
	ahead := receipt.Add(event.MaxAhead).UnixMilli()
	refused(strconv.FormatInt(ahead+1, 10), event.ErrTimeAhead)
	if e, err := history(strconv.FormatInt(ahead, 10)); err != nil || e.Time != ahead {
		t.Errorf("5 minutes ahead: %d, %v", e.Time, err)
	}
}

// The wire contract of the Insights API is its own: ms, and the time of receipt for
// what lies ahead.
func TestTimesOfTheInsightsAPIStay(t *testing.T) {
	for value, want := range map[string]string{
		"1795763133": "1970-01-21T18:49:23.133Z", "0": "1970-01-01T00:00:00.000Z", "1795590333000000": event.FormatTime(receipt.UnixMilli()), "1.795e12": "2026-11-18T11:06:40.000Z",
		`"2026-11-20T10:00:00Z"`: "Invalid type for field events: expected number, got string", "1795000000000.5": "The timestamp must be a non-negative integer of milliseconds",
	} {
		raw := `{"eventType":"view","eventName":"N","index":"i","userToken":"u","timestamp":` + value + `,"filters":["a:b"]}`
		e, err := event.Decode([]byte(raw), event.Rules{Now: receipt, Ahead: event.MaxAhead})
		got := event.FormatTime(e.Time)
		if err != nil {
			got = asRefusal(t, err).Message
		}
		if got != want {
			t.Errorf("timestamp %s: %s; want %s", value, got, want)
		}
	}
}

// The zone of the machine plays no part.
func TestMachineZoneChangesNothing(t *testing.T) {
	texts := []string{"2026-11-21 05:18:55", "2026-11-21", "2026-11-21 05:18:55 +0100", "2026-11-21 05:18:55 EST", "2026-11-21 05:18:55 UTC", "2026-11-21T05:18:55", "Sat, 21 Nov 2026 05:18:55 GMT"}
	read := func() (all []string) {
		for _, text := range texts {
			ms, err := event.ParseTime(text)
			all = append(all, fmt.Sprint(ms, err))
		}
		return all
	}
	want := read()
	was := time.Local
	defer func() { time.Local = was }()
	for _, name := range []string{"America/New_York", "Asia/Kolkata", "Pacific/Kiritimati"} {
		zone, err := time.LoadLocation(name)
		must.Succeed(t, err)
		time.Local = zone
		if got := read(); !slices.Equal(got, want) {
			t.Errorf("in %s: %q; want %q", name, got, want)
		}
	}
}

func TestTimeText(t *testing.T) {
	for value, want := range map[string]string{`"2026-11-21"`: "2026-11-21", `"\u0032026"`: "2026", `""`: "", "null": "", "": "", "1795255200": "1795255200", "true": "true", `{"a":1}`: `{"a":1}`} {
		if got := event.TimeText([]byte(value)); got != want {
			t.Errorf("TimeText(%s) = %q; want %q", value, got, want)
		}
	}
}

func BenchmarkParseTime(b *testing.B) {
	for _, text := range []string{"1795255200000", "1795255200", "2026-11-21T10:00:00Z", "2026-11-21 10:00:00.250 +02:00"} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := event.ParseTime(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
