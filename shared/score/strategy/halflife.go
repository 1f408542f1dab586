package strategy

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/fault"
)

// Limits of a half-life that counts events.
const (
	minHalfLifeEvents = 0.1
	maxHalfLifeEvents = 50
)

const (
	minuteMS = int64(time.Minute / time.Millisecond)
	dayMS    = 24 * 60 * minuteMS
)

// HalfLife is the age at which an event counts half. It is a number of days
// (30), a time ("30d", "12h", "45m") or, in ranking.session.halfLife alone, a
// number of newer events ("2e"). It keeps the text as it was given: 30 and
// "30d" are different values of equal length (SameAs). The zero value is not a
// half-life and stands for an absent one.
type HalfLife struct {
	text   string // without quotes
	ms     int64  // 0 for a number of events
	tenths int    // of events, 0 for a time
}

// Days returns the half-life that clients write as a number: n whole days.
// Validate refuses numbers outside 1 to MaxHalfLifeDays.
func Days(n int) HalfLife {
	return HalfLife{text: strconv.Itoa(n), ms: int64(n) * dayMS}
}

// InDays returns a half-life for each number of days.
func InDays(days ...int) []HalfLife {
	var list []HalfLife
	for _, n := range days {
		list = append(list, Days(n))
	}
	return list
}

// Events returns the half-life of n newer events, rounded to a tenth: "2e".
func Events(n float64) HalfLife {
	tenths := int(math.Round(n * 10))
	text := strconv.FormatFloat(float64(tenths)/10, 'f', -1, 64) + "e"
	return HalfLife{text: text, tenths: tenths}
}

// ParseHalfLife reads a half-life from the text of a query parameter or of an
// option: "30" is the number of days, the other forms are as in JSON without
// their quotes. The error is a *fault.Error that reads on after the name of the
// parameter: "must be ...".
func ParseHalfLife(text string) (HalfLife, error) {
	h, fit := parseHalfLife(text)
	if !fit {
		return HalfLife{}, invalid("must be a number of days or a text such as 30d, 12h or 45m, got %s", quote(text))
	}
	if fault := h.fault(); fault != "" {
		return HalfLife{}, invalid("%s", fault)
	}
	return h, nil
}

// parseHalfLife reports whether text has the form of a half-life. The limits
// are another matter: fault.
func parseHalfLife(text string) (h HalfLife, ok bool) {
	h.text = text
	digits := strings.TrimRight(text, "dhme")
	if digits == "" || len(text)-len(digits) > 1 || digits[0] == '+' || digits[0] == '-' {
		return h, false
	}
	unit := text[len(digits):]
	if unit == "e" {
		return parseEvents(text, digits)
	}
	if len(digits) > 1 && digits[0] == '0' {
		return h, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil && strings.Trim(digits, "0123456789") != "" {
		return h, false
	}
	scale := map[string]int64{"": dayMS, "d": dayMS, "h": 60 * minuteMS, "m": minuteMS}[unit]
	h.ms = int64(min(n, math.MaxInt32)) * scale // beyond every limit, and no overflow
	return h, true
}

// parseEvents reads a number of events with at most one decimal, written in
// the one way in which Events writes it.
func parseEvents(text, number string) (HalfLife, bool) {
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n > math.MaxInt32 {
		return HalfLife{}, false
	}
	h := Events(n)
	return h, h.text == text
}

// Millis returns the half-life in milliseconds, or 0 if it counts events.
func (h HalfLife) Millis() float64 { return float64(h.ms) }

// Events returns the number of newer events after which an event counts half.
// ok reports whether h counts events.
func (h HalfLife) Events() (n float64, ok bool) { return float64(h.tenths) / 10, h.tenths != 0 }

// WholeDays returns n for a half-life that was given as the number n. ok is
// false for every text, also for "30d".
func (h HalfLife) WholeDays() (n int, ok bool) {
	return int(h.ms / dayMS), h.isNumber()
}

// String returns the half-life as it was given, without quotes: 30, 12h, 2e.
func (h HalfLife) String() string { return h.text }

// IsZero reports whether h is absent.
func (h HalfLife) IsZero() bool { return h == HalfLife{} }

// Equal reports whether h and o are written in the same way. It equals h == o.
func (h HalfLife) Equal(o HalfLife) bool { return h == o }

// SameAs reports whether h and o are equally long, however they are written.
func (h HalfLife) SameAs(o HalfLife) bool { return h.ms == o.ms && h.tenths == o.tenths }

func (h HalfLife) isNumber() bool {
	return h.text != "" && !strings.ContainsAny(h.text[len(h.text)-1:], "dhme")
}

// fault returns what is wrong with the length of h, or "".
func (h HalfLife) fault() string {
	switch n, events := h.Events(); {
	case h.isNumber() && (h.ms < dayMS || h.ms > MaxHalfLifeDays*dayMS):
		return fmt.Sprintf("must be an integer from 1 to %d, got %s", MaxHalfLifeDays, h.text)
	case h.isNumber():
		return ""
	case events && (n < minHalfLifeEvents || n > maxHalfLifeEvents):
		return fmt.Sprintf("must be from %ge to %de, got %s", minHalfLifeEvents, maxHalfLifeEvents, quote(h.text))
	case events:
		return ""
	case h.ms < minuteMS || h.ms > MaxHalfLifeDays*dayMS:
		return fmt.Sprintf("must be from 1m to %dd, got %s", MaxHalfLifeDays, quote(h.text))
	}
	return ""
}

// MarshalJSON writes h as it was given: a number or a string.
func (h HalfLife) MarshalJSON() ([]byte, error) {
	if h.isNumber() {
		return []byte(h.text), nil
	}
	return json.Marshal(h.text)
}

// UnmarshalJSON reads what MarshalJSON writes. Strategies from clients go
// through Decode, whose errors name the field.
func (h *HalfLife) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	read, err := decodeHalfLife("a half-life", b)
	if err == nil {
		*h = read
	}
	return err
}

// decodeHalfLife decodes the JSON value of the half-life at path, whose limits
// Validate checks.
func decodeHalfLife(path string, b []byte) (HalfLife, error) {
	const forms = `%s must be a number of days or a text such as "30d", "12h" or "45m", got %s`
	switch first := b[0]; {
	case first == 'n':
		return HalfLife{}, required(path)
	case first == '"':
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return HalfLife{}, invalid("%s must be a text: %v", path, err)
		}
		h, ok := parseHalfLife(text)
		if !ok || h.isNumber() {
			return HalfLife{}, invalid(forms, path, quote(text))
		}
		return h, nil
	case first == '-' || first >= '0' && first <= '9':
		n, err := strconv.Atoi(string(b))
		if err != nil || int64(n) != int64(int32(n)) {
			return HalfLife{}, invalid("%s must be an integer, got %s", path, shorten(string(b)))
		}
		return Days(n), nil
	default:
		return HalfLife{}, invalid(forms, path, kindOf(first))
	}
}

// HalfLifeAt returns the position of a half-life among the strategy's. The zero
// half-life stands for the first. The error is a *fault.Error.
func HalfLifeAt(all []HalfLife, h HalfLife) (int, error) {
	if h.IsZero() {
		return 0, nil
	}
	if at := slices.IndexFunc(all, h.SameAs); at >= 0 {
		return at, nil
	}
	return 0, fault.New(fault.Invalid, "halfLife must be one of the strategy's halfLives: %s", listHalfLives(all))
}

// listHalfLives names the half-lives of a strategy.
func listHalfLives(all []HalfLife) string {
	if len(all) == 0 {
		return "it has none"
	}
	texts := make([]string, len(all))
	for i, h := range all {
		texts[i] = h.String()
	}
	return strings.Join(texts, ", ")
}
