package event

import "time"

// FormatTime returns a time in ms since the epoch for people to read: RFC 3339
// in UTC with three digits of milliseconds.
func FormatTime(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}
