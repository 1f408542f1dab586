package event

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/fault"
)

// FormatTime returns a time in ms since the epoch for people to read: RFC 3339
// in UTC with three digits of milliseconds.
func FormatTime(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

// Bounds of the times of events, in ms. What lies outside of them is what
// databases and programs write for a time that is missing, such as
// 1970-01-01 or 9999-12-31. Within them, the digits of a number say its unit.
const (
	MinTime = 315_532_800_000 // 1980
	endTime = 7_258_118_400_000
)

// Bounds of the dates of objects, in ms: the years 1000 to 9999.
const (
	minDate = -30_610_224_000_000
	endDate = 253_402_300_800_000
)

// Reasons for which a time is refused. Each is a *fault.Error, and holds nothing
// that a client sent.
var (
	ErrTimeForm error = fault.New(fault.Invalid,
		"The timestamp has no form that the engine reads: write 2026-11-21T10:00:00Z, "+
			"or a number of seconds or milliseconds since 1970")
	ErrTimeZone error = fault.New(fault.Invalid,
		"The timestamp names a time zone other than UTC: write the offset alone, such as -05:00")
	// ErrTimeNumber is for numbers such as 0, 2026 and 20261121.
	ErrTimeNumber error = fault.New(fault.Invalid,
		"The timestamp is a number that is no time from 1980 to 2199 in seconds, milliseconds, "+
			"microseconds or nanoseconds since 1970 (a day is written 2026-11-21)")
	ErrTimeRange error = fault.New(fault.Invalid, "The timestamp lies before 1980 or after 2199")
	ErrTimeAhead error = fault.New(fault.Invalid, "The timestamp lies more than %d minutes in the future",
		MaxAhead/time.Minute)
)

// ImpossibleTime reports whether a reason says that an event has a time that no
// event can have, and not that its time cannot be read.
func ImpossibleTime(reason string) bool {
	return reason == ErrTimeNumber.Error() || reason == ErrTimeRange.Error() || reason == ErrTimeAhead.Error()
}

// timeForm is a way to write a time, with examples of it.
type timeForm struct {
	Form     string
	Examples []string
}

// TimeForms are the forms that ParseTime reads. All examples are 10:00 UTC on
// 2026-11-21, but for that of a date alone. Help texts and documents show them.
var TimeForms = []timeForm{
	{"RFC 3339; a space for the T, no seconds, or a fraction of them",
		[]string{"2026-11-21T10:00:00Z", "2026-11-21 10:00Z", "2026-11-21T10:00:00.000Z"}},
	{"with an offset from UTC, after a space or not",
		[]string{"2026-11-21T12:00:00+02:00", "2026-11-21 12:00:00 +0200", "2026-11-21 07:00:00-03"}},
	{"UTC, GMT or Z by name", []string{"2026-11-21 10:00:00 UTC", "2026-11-21 10:00:00 GMT"}},
	{"without a zone: UTC", []string{"2026-11-21T10:00:00", "2026-11-21 10:00:00"}},
	{"a date: its first moment in UTC", []string{"2026-11-21"}},
	{"dates of HTTP and of mail", []string{"Sat, 21 Nov 2026 10:00:00 GMT", "21 Nov 2026 12:00:00 +0200"}},
	{"seconds since 1970, also with a fraction", []string{"1795255200", "1795255200.000"}},
	{"milliseconds, microseconds or nanoseconds since 1970",
		[]string{"1795255200000", "1795255200000000", "1795255200000000000"}},
}

// ParseTime reads the time of an event, in ms since the epoch: a text of one of
// TimeForms. A fraction of a millisecond is cut off. A time without a zone is
// UTC; the zone of the machine plays no part. A number below 1e11 counts
// seconds, below 1e14 milliseconds, below 1e17 microseconds, any other
// nanoseconds. The error is ErrTimeForm, ErrTimeZone, ErrTimeNumber or
// ErrTimeRange.
func ParseTime(text string) (int64, error) {
	if len(text) == len("1795255200000") { // what nearly all events have
		if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms >= 1e12 && ms < endTime {
			return ms, nil
		}
	}
	ms, err := readTime(text)
	if err == nil && (ms < MinTime || ms >= endTime) {
		return 0, ErrTimeRange
	}
	return ms, err
}

// ParseDate is ParseTime for dates that lie further away, such as that of an old
// book: a text that is not a number may be of any year from 1000 to 9999.
func ParseDate(text string) (int64, error) {
	ms, err := readTime(text)
	if err == nil && (ms < minDate || ms >= endDate) {
		return 0, ErrTimeRange
	}
	return ms, err
}

// TimeText returns the text of a time that is a value of JSON: the content of a
// string, "" of null, and any other value as it is.
func TimeText(value []byte) string {
	switch kind := jsontext.Value(value).Kind(); kind {
	case jsontext.KindNull, jsontext.KindInvalid:
		return ""
	case jsontext.KindString:
		plain, err := jsontext.AppendUnquote(nil, value)
		if err == nil {
			return string(plain)
		}
	}
	return string(value)
}

// readTime reads a time of any year.
func readTime(text string) (int64, error) {
	s := scanner(strings.TrimSpace(text))
	if ms, number, err := s.number(); number {
		return ms, err
	}
	year, month, day, ok := s.isoDate()
	if ok && s == "" {
		return instant(year, month, day, 0)
	}
	switch {
	case ok && (s.skip('T') || s.skip('t')):
	case (ok || s.mailDate(&year, &month, &day)) && s.spaces():
	default:
		return 0, ErrTimeForm
	}
	ms, ok := s.clock()
	if !ok {
		return 0, ErrTimeForm
	}
	offset, err := s.zone()
	if err != nil {
		return 0, err
	}
	return instant(year, month, day, ms-offset)
}

// instant returns the instant that lies some ms after the begin of a day.
func instant(year, month, day int, ms int64) (int64, error) {
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if month < 1 || month > 12 || t.Day() != day {
		return 0, ErrTimeForm
	}
	return t.UnixMilli() + ms, nil
}

// scanner is what is left to read of a text.
type scanner string

// skip skips a byte, if it is next.
func (s *scanner) skip(b byte) bool {
	ok := *s != "" && (*s)[0] == b
	if ok {
		*s = (*s)[1:]
	}
	return ok
}

// spaces skips one space or several, if they are next.
func (s *scanner) spaces() bool {
	ok := s.skip(' ')
	for s.skip(' ') {
	}
	return ok
}

// digits reads a number of at least and at most so many digits.
func (s *scanner) digits(least, most int) (n int, ok bool) {
	i := 0
	for i < most && i < len(*s) && isDigit((*s)[i]) {
		n = n*10 + int((*s)[i]-'0')
		i++
	}
	if i < least {
		return 0, false
	}
	*s = (*s)[i:]
	return n, true
}

// run reads all digits that are next.
func (s *scanner) run() string {
	i := 0
	for i < len(*s) && isDigit((*s)[i]) {
		i++
	}
	digits := string((*s)[:i])
	*s = (*s)[i:]
	return digits
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// isoDate reads a date such as 2026-11-21. It reads nothing if another one is
// next.
func (s *scanner) isoDate() (year, month, day int, ok bool) {
	rest := *s
	if year, ok = rest.digits(4, 4); ok && rest.skip('-') {
		if month, ok = rest.digits(2, 2); ok && rest.skip('-') {
			if day, ok = rest.digits(2, 2); ok {
				*s = rest
				return year, month, day, true
			}
		}
	}
	return 0, 0, 0, false
}

const (
	weekdays = "mon tue wed thu fri sat sun "
	months   = "jan feb mar apr may jun jul aug sep oct nov dec "
)

// name reads one of names of three letters and returns its place, from 1.
func (s *scanner) name(names string) (int, bool) {
	if len(*s) < 3 {
		return 0, false
	}
	at := strings.Index(names, strings.ToLower(string((*s)[:3]))+" ")
	if at < 0 {
		return 0, false
	}
	*s = (*s)[3:]
	return at/4 + 1, true
}

// mailDate reads a date such as Sat, 21 Nov 2026.
func (s *scanner) mailDate(year, month, day *int) bool {
	if _, ok := s.name(weekdays); ok && (!s.skip(',') || !s.spaces()) {
		return false
	}
	var ok bool
	if *day, ok = s.digits(1, 2); !ok || !s.spaces() {
		return false
	}
	if *month, ok = s.name(months); !ok || !s.spaces() {
		return false
	}
	*year, ok = s.digits(4, 4)
	return ok
}

// clock reads a time of day, such as 10:00 or 10:00:00.250, in ms.
func (s *scanner) clock() (ms int64, ok bool) {
	hour, ok := s.digits(2, 2)
	if !ok || hour > 23 || !s.skip(':') {
		return 0, false
	}
	minute, ok := s.digits(2, 2)
	if !ok || minute > 59 {
		return 0, false
	}
	ms = int64(hour*60+minute) * 60_000
	if !s.skip(':') {
		return ms, true
	}
	second, ok := s.digits(2, 2)
	if !ok || second > 59 {
		return 0, false
	}
	ms += int64(second) * 1000
	if !s.skip('.') && !s.skip(',') {
		return ms, true
	}
	fraction := s.run()
	for i, unit := range [...]int64{100, 10, 1} {
		if i < len(fraction) {
			ms += int64(fraction[i]-'0') * unit
		}
	}
	return ms, fraction != ""
}

// zone reads the zone at the end of a time: how far its clock is ahead of UTC,
// in ms.
func (s *scanner) zone() (ahead int64, err error) {
	s.spaces()
	if s.utc() {
		return 0, nil
	}
	switch sign := (*s)[0]; {
	case sign == '+' || sign == '-':
		*s = (*s)[1:]
		hours, ok := s.digits(2, 2)
		if !ok || hours > 23 {
			return 0, ErrTimeForm
		}
		minutes := 0
		if colon := s.skip(':'); colon || *s != "" && isDigit((*s)[0]) {
			if minutes, ok = s.digits(2, 2); !ok || minutes > 59 {
				return 0, ErrTimeForm
			}
		}
		ahead = int64(hours*60+minutes) * 60_000
		if sign == '-' {
			ahead = -ahead
		}
		if s.spaces(); *s == "" || ahead == 0 && s.utc() { // Go writes +0000 UTC
			return ahead, nil
		}
	case strings.EqualFold(string(*s), "am") || strings.EqualFold(string(*s), "pm"):
		return 0, ErrTimeForm
	}
	if isLetter((*s)[0]) || (*s)[0] == '[' {
		return 0, ErrTimeZone
	}
	return 0, ErrTimeForm
}

// utc reports whether what is left says UTC, or nothing.
func (s *scanner) utc() bool {
	switch {
	case *s == "", strings.EqualFold(string(*s), "Z"), strings.EqualFold(string(*s), "UTC"),
		strings.EqualFold(string(*s), "GMT"):
		return true
	}
	return false
}

// number reads a decimal number since the epoch, in ms, such as 1795255200,
// 1795255200.250 or 1.7952552e9. It is exact, as a floating-point number is not.
func (s scanner) number() (ms int64, ok bool, err error) {
	negative := s.skip('-')
	digits := s.run()
	if digits == "" {
		return 0, false, nil
	}
	point := len(digits) // so many of them stand before the decimal point
	if s.skip('.') {
		fraction := s.run()
		if fraction == "" {
			return 0, false, nil
		}
		digits += fraction
	}
	if s.skip('e') || s.skip('E') {
		sign := 1
		if s.skip('-') {
			sign = -1
		} else {
			s.skip('+')
		}
		exponent, ok := s.digits(1, 4)
		if !ok {
			return 0, false, nil
		}
		point += sign * exponent
	}
	if s != "" {
		return 0, false, nil
	}
	for digits != "" && digits[0] == '0' {
		digits, point = digits[1:], point-1
	}
	ms, ok = millis(digits, point)
	if !ok || negative || ms < MinTime || ms >= endTime {
		return 0, true, ErrTimeNumber
	}
	return ms, true, nil
}

// millis returns in ms the number of these digits, of which so many stand before
// the decimal point. Their count says the unit.
func millis(digits string, point int) (ms int64, ok bool) {
	length := point - 6 // of the number in ms
	switch {
	case point < 1 || point > 19:
		return 0, false
	case point <= 11:
		length = point + 3
	case point <= 14:
		length = point
	case point <= 17:
		length = point - 3
	}
	for i := range length {
		ms *= 10
		if i < len(digits) {
			ms += int64(digits[i] - '0')
		}
	}
	return ms, true
}
