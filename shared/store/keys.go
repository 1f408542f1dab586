package store

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// timeLayout is the format of times in keys of the log: milliseconds, UTC, with a
// fixed width, so that keys sort by time.
const timeLayout = "2006-01-02T15:04:05.000Z"

// maxTime is the last millisecond whose key sorts in time order.
var maxTime = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC).UnixMilli()

func userKey(app, user string) string { return app + "," + user + "," }

// userOf returns the user in a key of the log, of a user row or of a block.
func userOf(key string) string {
	_, rest, _ := strings.Cut(key, ",")
	user, _, _ := strings.Cut(rest, ",")
	return user
}

func logKey(app, user string, ms int64, id string) string {
	key := make([]byte, 0, len(app)+len(user)+len(timeLayout)+len(id)+3)
	key = append(append(append(append(key, app...), ','), user...), ',')
	key = append(append(appendLogTime(key, ms), ','), id...)
	return string(key)
}

func appendLogTime(dst []byte, ms int64) []byte {
	return time.UnixMilli(min(max(ms, 0), maxTime)).UTC().AppendFormat(dst, timeLayout)
}

// parseLogKey returns the parts of a log key. They alias the key.
func parseLogKey(key string) (app, user string, ms int64, id string, err error) {
	app, rest, _ := strings.Cut(key, ",")
	user, rest, _ = strings.Cut(rest, ",")
	time, id, ok := strings.Cut(rest, ",")
	if !ok {
		return "", "", 0, "", fmt.Errorf("%w %q: want app,user,time,id", ErrLogKey, key)
	}
	if ms, err = parseLogTime(time); err != nil {
		return "", "", 0, "", fmt.Errorf("%w %q: %w", ErrLogKey, key, err)
	}
	return app, user, ms, id, nil
}

// parseLogTime is time.Parse for timeLayout only. Scans call it for each row.
func parseLogTime(s string) (int64, error) {
	if len(s) == len(timeLayout) && s[4] == '-' && s[7] == '-' && s[10] == 'T' &&
		s[13] == ':' && s[16] == ':' && s[19] == '.' && s[23] == 'Z' {
		ok := true
		num := func(from, to int) int {
			n := 0
			for _, c := range []byte(s[from:to]) {
				ok = ok && c >= '0' && c <= '9'
				n = n*10 + int(c-'0')
			}
			return n
		}
		t := time.Date(num(0, 4), time.Month(num(5, 7)), num(8, 10),
			num(11, 13), num(14, 16), num(17, 19), num(20, 23)*1e6, time.UTC)
		if ok {
			return t.UnixMilli(), nil
		}
	}
	return 0, fmt.Errorf("time %q is not of the form %s", s, timeLayout)
}

// indexPrefix escapes the index name, which may contain a comma. An object ID needs
// no escape, because it stands last in the key.
func indexPrefix(app, index string) string { return app + "," + url.QueryEscape(index) + "," }

func objectKey(app, index, objectID string) string { return indexPrefix(app, index) + objectID }
