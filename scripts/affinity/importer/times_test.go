package importer

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // of the machine's zones below

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/api/track"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
)

// now is when the files are read.
var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// shifted is a form that moves events by a day.
var shifted = Form{Shift: 24 * time.Hour, Now: now}

// intakes read a time that is a value of JSON, and return the time of the event.
var intakes = map[string]func(value string) (int64, error){
	"a line of an import": func(value string) (int64, error) { return imported(eventAt(value)) },
	"a line of a file":    func(value string) (int64, error) { return fromFile(Form{}, eventAt(value)) },
	"a line with names of its own": func(value string) (int64, error) {
		return fromFile(Form{}, strings.Replace(eventAt(value), "userToken", "user_token", 1))
	},
	"a line that is shifted": func(value string) (int64, error) { return back(fromFile(shifted, eventAt(value))) },
	"a row of CSV": func(value string) (int64, error) {
		return fromFile(Form{}, rowAt(value))
	},
	"a row of CSV that is shifted": func(value string) (int64, error) {
		return back(fromFile(Form{Shift: shifted.Shift, Now: now}, rowAt(value)))
	},
	"a track call": func(value string) (int64, error) {
		call, err := track.Parse([]byte(callAt(value)))
		if err != nil {
			return 0, err
		}
		events, err := call.Events()
		if err != nil {
			return 0, err
		}
		return events[0].Timestamp, nil
	},
	"a track call of a file":       func(value string) (int64, error) { return fromFile(Form{}, callAt(value)) },
	"a track call that is shifted": func(value string) (int64, error) { return back(fromFile(shifted, callAt(value))) },
	"a backtest": func(value string) (int64, error) {
		l, err := oneLine(Form{}, eventAt(value))
		if err != nil {
			return 0, err
		}
		e, err := Files{Now: now}.parseEvent(l)
		return e.Time, err
	},
}

func eventAt(value string) string {
	return `{"eventType":"view","eventName":"N","index":"i","userToken":"u","filters":["a:b"],"timestamp":` + value + `}`
}

func callAt(value string) string {
	return `{"type":"track","event":"Product Viewed","userId":"u","properties":{"product_id":"1","search_index":"i"},"timestamp":` + value + `}`
}

func rowAt(value string) string {
	var text strings.Builder
	w := csv.NewWriter(&text)
	_ = w.WriteAll([][]string{{"eventType", "eventName", "userToken", "index", "filters", "timestamp"}, {"view", "N", "u", "i", "a:b", event.TimeText([]byte(value))}})
	return text.String()
}

// imported reads a line as the import route does.
func imported(line string) (int64, error) {
	e, err := event.Decode([]byte(line), event.Rules{Now: now.Add(shifted.Shift), Ahead: event.MaxAhead, History: true})
	var refusal *event.Refusal
	if errors.As(err, &refusal) {
		return 0, errors.New(refusal.Message)
	}
	return e.Time, err
}

func oneLine(f Form, text string) ([]byte, error) {
	s := NewSource("x", strings.NewReader(text), -1)
	s.As(f)
	l, err := s.next()
	if l.fault != "" {
		err = errors.New(l.fault)
	}
	return l.text, err
}

func fromFile(f Form, text string) (int64, error) {
	l, err := oneLine(f, text)
	if err != nil {
		return 0, err
	}
	return imported(string(l))
}

// back takes the shift of a time back.
func back(ms int64, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return ms - shifted.Shift.Milliseconds(), nil
}

// writing is a way to write an instant. It returns the value of JSON, and the ms to
// which it is exact.
type writing func(t *rapid.T, ms int64) (value string, exact int64)

var writings = map[string]writing{
	"a date and a time": func(t *rapid.T, ms int64) (string, int64) {
		at, zone := inZone(t, ms)
		clock, exact := clock(t, at)
		return quoted(at.Format("2006-01-02") + rapid.SampledFrom([]string{"T", " ", "t"}).Draw(t, "separator") + clock + zone), exact
	},
	"a date of mail": func(t *rapid.T, ms int64) (string, int64) {
		at, zone := inZone(t, ms)
		clock, exact := clock(t, at)
		return quoted(at.Format(rapid.SampledFrom([]string{"Mon, 02 Jan 2006 ", "2 Jan 2006 "}).Draw(t, "date")) + clock + zone), exact
	},
	"a date": func(_ *rapid.T, ms int64) (string, int64) {
		return quoted(event.FormatTime(ms)[:10]), floor(ms, 86_400_000)
	},
	"seconds": func(t *rapid.T, ms int64) (string, int64) { return number(t, ms/1000, ""), floor(ms, 1000) },
	"with decimals": func(t *rapid.T, ms int64) (string, int64) {
		return number(t, ms/1000, fmt.Sprintf(".%03d", ms%1000)), ms
	},
	"milliseconds": func(t *rapid.T, ms int64) (string, int64) { return number(t, ms, ""), ms },
	"microseconds": func(t *rapid.T, ms int64) (string, int64) {
		return number(t, ms*1000+rapid.Int64Range(0, 999).Draw(t, "rest"), ""), ms
	},
	"nanoseconds": func(t *rapid.T, ms int64) (string, int64) {
		return number(t, ms*1_000_000+rapid.Int64Range(0, 999_999).Draw(t, "rest"), ""), ms
	},
}

func quoted(text string) string {
	value, _ := json.Marshal(text)
	return string(value)
}

func floor(ms, unit int64) int64 { return ms - ms%unit }

// number is a number or a text of it.
func number(t *rapid.T, n int64, decimals string) string {
	text := strconv.FormatInt(n, 10) + decimals
	if rapid.Bool().Draw(t, "a text") {
		return quoted(text)
	}
	return text
}

// inZone returns an instant in a zone, and how the zone is written.
func inZone(t *rapid.T, ms int64) (time.Time, string) {
	minutes := rapid.IntRange(-14*60, 14*60).Draw(t, "offset in minutes")
	form := rapid.SampledFrom([]string{"-07:00", "-0700", "-07", "", "Z", "UTC", "GMT", "utc"}).Draw(t, "zone")
	switch {
	case form == "-07":
		minutes -= minutes % 60
	case form[:min(1, len(form))] != "-":
		minutes = 0
	}
	zone := form
	at := time.UnixMilli(ms).In(time.FixedZone("", minutes*60))
	if strings.HasPrefix(form, "-") {
		zone = at.Format(form)
	}
	if zone != "" && rapid.Bool().Draw(t, "space") {
		zone = " " + zone
	}
	return at, zone
}

// clock writes a time of day, and returns to which ms it is exact.
func clock(t *rapid.T, at time.Time) (string, int64) {
	ms := at.UnixMilli()
	switch layout := rapid.SampledFrom([]string{"15:04", "15:04:05", "15:04:05.0", "15:04:05.000", "15:04:05,000", "15:04:05.000000000"}).Draw(t, "clock"); layout {
	case "15:04":
		return at.Format(layout), floor(ms, 60_000)
	case "15:04:05":
		return at.Format(layout), floor(ms, 1000)
	case "15:04:05.0":
		return at.Format(layout), floor(ms, 100)
	default:
		return at.Format(layout), ms
	}
}

// machine sets the zone of the machine.
func machine(t *rapid.T) {
	name := rapid.SampledFrom([]string{"UTC", "America/New_York", "Asia/Kolkata", "Europe/Berlin", "Pacific/Kiritimati"}).Draw(t, "machine's zone")
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	time.Local = zone
}

// One instant is one event, whichever way it is written, wherever it comes in and
// wherever the machine is.
func TestInstantIsTheSameInAllIntakes(t *testing.T) {
	was := time.Local
	defer func() { time.Local = was }()
	rapid.Check(t, func(t *rapid.T) {
		machine(t)
		ms := rapid.Int64Range(event.MinTime+86_400_000, now.UnixMilli()).Draw(t, "ms")
		way := rapid.SampledFrom(slices.Sorted(maps.Keys(writings))).Draw(t, "writing")
		value, want := writings[way](t, ms)
		for name, read := range intakes {
			if got, err := read(value); got != want || err != nil {
				t.Fatalf("%s: %s is %s, %v; want %s", name, value, event.FormatTime(got), err, event.FormatTime(want))
			}
		}
		record := `{"objectID":"1","at":` + value + `}`
		if got, ok := catalog.Date([]byte(record), "at"); got != want || !ok {
			t.Fatalf("date of an object: %s is %s, %v; want %s", value, event.FormatTime(got), ok, event.FormatTime(want))
		}
	})
}

// What cannot be read is refused in all intakes with one message, and nowhere replaced
// by the time of receipt.
func TestTimesAreRefusedAlikeInAllIntakes(t *testing.T) {
	was := time.Local
	defer func() { time.Local = was }()
	zones := rapid.SampledFrom([]string{"EST", "CET", "PST", "IST", "Europe/Paris", "[UTC]", "GMT+2", "-0500 EST"})
	refusals := []struct {
		want  error
		value *rapid.Generator[string]
	}{
		{event.ErrTimeForm, rapid.Map(rapid.StringMatching(`(yesterday|[0-9]{1,2}/[0-9]{2}/20[0-9]{2}|2026-(13|00)-0[1-9]|2026-02-30( 10:00)?|[1-9][0-9]{0,2}(,[0-9]{3})+|2026-11-24 [0-9]:30)`), quoted)},
		{event.ErrTimeZone, rapid.Custom(func(t *rapid.T) string {
			return quoted(time.UnixMilli(rapid.Int64Range(event.MinTime, now.UnixMilli()).Draw(t, "ms")).Format("2006-01-02 15:04:05") + " " + zones.Draw(t, "zone"))
		})},
		{event.ErrTimeNumber, rapid.Custom(func(t *rapid.T) string {
			days := rapid.Map(rapid.Int64Range(0, 30_000), func(n int64) int64 {
				day, _ := strconv.ParseInt(time.Unix(n*86_400, 0).UTC().Format("20060102"), 10, 64)
				return day
			})
			return number(t, rapid.OneOf(rapid.Int64Range(-10_000, 10_000), days, rapid.Int64Range(7_258_118_400, 315_532_799_999)).Draw(t, "n"), "")
		})},
	}
	rapid.Check(t, func(t *rapid.T) {
		machine(t)
		c := refusals[rapid.IntRange(0, len(refusals)-1).Draw(t, "reason")]
		value := c.value.Draw(t, "value")
		for name, read := range intakes {
			if got, err := read(value); err == nil || err.Error() != c.want.Error() {
				t.Fatalf("%s: %s is %s, %v; want %v", name, value, event.FormatTime(got), err, c.want)
			}
		}
		record := `{"objectID":"1","at":` + value + `}`
		if got, ok := catalog.Date([]byte(record), "at"); ok {
			t.Fatalf("date of an object: %s is %s", value, event.FormatTime(got))
		}
	})
}
