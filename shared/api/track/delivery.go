package track

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
)

// eventID returns a messageId as the eventId of an event, which may be shorter.
func eventID(messageID string) string {
	if len(messageID) <= api.MaxEventID {
		return messageID
	}
	sum := sha256.Sum256([]byte(messageID))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// How far the clock of a device may be off before the time of a call is corrected, and
// before the engine looks whether an earlier delivery was. Both times of a delivery include how
// long it was on its way, so that deliveries of one call may lie on both sides of a bound: the
// second one is lower, and lets them differ by a minute.
const (
	maxOff    = 5 * time.Minute
	maxUnseen = maxOff - time.Minute
)

// Received returns a delivery of a call that has a messageId with the time at which the user
// acted, as the engine understands it. If the clock of the device is off by more than 5 minutes,
// the receipt less SentAt is added, as Segment does
// (https://segment.com/docs/connections/spec/common/#timestamps). A call without a time, or
// with one that is ahead of the receipt by more, has the time of the receipt. unsure
// says that other deliveries of the call may have another time. The error is that of
// event.ParseTime.
//
// A call without a messageId stays as it is: nobody could tell that its deliveries are one.
func (c Call) Received(at time.Time) (_ Call, unsure bool, err error) {
	if c.MessageID == "" {
		return c, false, nil
	}
	receipt := at.UnixMilli()
	when := receipt
	if c.Time != "" {
		if when, err = event.ParseTime(c.Time); err != nil {
			return c, false, err
		}
		off := time.Duration(0)
		if sent, err := event.ParseTime(c.SentAt); err == nil && !c.corrected {
			off = time.Duration(receipt-sent) * time.Millisecond
		}
		if off.Abs() > maxOff {
			when = min(when+off.Milliseconds(), receipt)
		}
		if when <= receipt+event.MaxAhead.Milliseconds() && off.Abs() <= maxUnseen {
			return c, false, nil
		}
		when = min(when, receipt)
	}
	c.Time = strconv.FormatInt(when, 10)
	return c, true, nil
}
