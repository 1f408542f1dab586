package event

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// checks are the rules of an event, in the order in which their faults are
// reported: first those for which the Insights API publishes a message, in its
// order. Each returns the message of its fault, or "".
var checks = [...]func(*draft, *Rules) string{
	checkName, checkType, checkIndex, checkTokens, checkTarget, checkPositions,
	checkQueryID, checkTimestamp, checkSubtype, checkObjectData, checkRest,
}

// fault validates the draft. It returns "" if the draft's Event is complete, or
// the message of the first fault.
func (d *draft) fault(r *Rules) string {
	if d.typeFault != "" {
		return d.typeFault
	}
	for _, check := range checks {
		if message := check(d, r); message != "" {
			return message
		}
	}
	if d.rest.present() {
		kept := d.rest
		d.Event.details = &kept
	}
	return ""
}

// present reports whether the client sent any of the fields.
func (d *details) present() bool {
	return len(d.positions) > 0 || len(d.objectData) > 0 ||
		d.value.kind != scalarAbsent || d.currency != "" || d.agentID != "" || d.eventID != ""
}

func checkName(d *draft, _ *Rules) string {
	switch {
	case d.Name == "":
		return msgNameRequired
	case !ValidName(d.Name):
		return msgNameForm
	}
	return ""
}

// ValidName reports whether an event may have this name: 1 to 64 visible ASCII characters.
func ValidName(name string) bool {
	for i := 0; i < len(name); i++ {
		if c := name[i]; c < 0x20 || c > 0x7E {
			return false
		}
	}
	return name != "" && len(name) <= maxName
}

func checkType(d *draft, _ *Rules) string {
	switch d.Type {
	case View, Click, Conversion, InstantSearch:
		return ""
	case "":
		return msgTypeRequired
	default:
		return msgTypeForm
	}
}

func checkIndex(d *draft, r *Rules) string {
	if d.Index == "" {
		d.Index = r.Index
	}
	switch {
	case d.Index == "" && d.Type != InstantSearch:
		return msgIndexRequired
	case len(d.Index) > maxID:
		return msgIndexLong
	}
	return ""
}

func checkTokens(d *draft, _ *Rules) string {
	switch {
	case d.UserToken == "":
		return msgTokenRequired
	case !ValidUserToken(d.UserToken):
		return msgTokenForm
	case d.AuthenticatedUserToken != "" && !ValidUserToken(d.AuthenticatedUserToken):
		return msgAuthToken
	}
	return ""
}

func checkTarget(d *draft, _ *Rules) string {
	switch {
	case d.objectCount > 0 && d.filterCount > 0:
		return msgBothTargets
	case d.objectCount == 0 && d.filterCount == 0 && d.Type != InstantSearch:
		return msgNoTarget
	case d.objectCount > maxTargets:
		return msgTooManyObjects
	case d.filterCount > maxTargets:
		return msgTooManyFilters
	}
	for _, id := range d.ObjectIDs {
		if id == "" || len(id) > maxID {
			return msgObjectIDForm
		}
	}
	d.ObjectIDs = distinct(d.ObjectIDs)
	return d.parseFilters()
}

// parseFilters parses the filters of the event and drops repeated ones.
func (d *draft) parseFilters() string {
	if d.filterCount == 0 {
		return ""
	}
	d.Filters = make([]Filter, 0, len(d.rawFilters))
	for _, raw := range d.rawFilters {
		f, fault := parseFilter(raw)
		if fault != "" {
			return fault
		}
		if !slices.Contains(d.Filters, f) {
			d.Filters = append(d.Filters, f)
		}
	}
	return ""
}

// distinct removes repeated strings in place. Lists have at most maxTargets
// items.
func distinct(list []string) []string {
	kept := list[:0]
	for _, s := range list {
		if !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	return kept
}

func checkPositions(d *draft, _ *Rules) string {
	positions := d.rest.positions
	if len(positions) == 0 {
		if d.Type == Click && d.QueryID != "" && d.objectCount > 0 {
			return msgPositionsCount
		}
		return ""
	}
	switch {
	case d.Type != Click:
		return msgPositionsClick
	case d.QueryID == "":
		return msgPositionsQuery
	case slices.Min(positions) < 1:
		return msgPositionsForm
	case len(positions) != d.objectCount:
		return msgPositionsCount
	}
	return ""
}

func checkQueryID(d *draft, _ *Rules) string {
	if d.QueryID != "" && !validQueryID(d.QueryID) {
		return msgQueryID
	}
	return ""
}

// validQueryID accepts the ID of a search (32 lower-case hexadecimal digits)
// and the ID of a message in a conversation.
func validQueryID(s string) bool {
	if message, ok := strings.CutPrefix(s, "message_"); ok {
		return message != "" && len(s) <= maxQueryID &&
			strings.IndexFunc(message, func(r rune) bool { return r < '!' || r > '~' }) < 0
	}
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}

// checkTimestamp sets the event's time.
func checkTimestamp(d *draft, r *Rules) string {
	now := r.Now.UnixMilli()
	if d.timestamp == "" {
		d.Time, d.Received = now, true
		return ""
	}
	if r.History {
		at, err := ParseTime(d.timestamp)
		if err == nil && at > now+r.Ahead.Milliseconds() {
			err = ErrTimeAhead
		}
		if d.Time = at; err != nil {
			return err.Error()
		}
		return ""
	}
	sent, ok := integer(d.timestamp)
	switch {
	case !ok || sent < 0:
		return msgTimestampForm
	case sent > now+r.Ahead.Milliseconds():
		d.Time, d.Received = now, true
	case r.MaxAge > 0 && sent < now-r.MaxAge.Milliseconds():
		return msgTooOld
	default:
		d.Time = sent
	}
	return ""
}

func checkSubtype(d *draft, _ *Rules) string {
	switch {
	case d.Subtype == "":
		return ""
	case d.Subtype != "addToCart" && d.Subtype != "purchase":
		return msgSubtypeForm
	case d.Type != Conversion:
		return msgSubtypeType
	}
	return ""
}

// checkObjectData does not require a subtype: clients that infer query IDs add
// objectData to conversions of every kind.
func checkObjectData(d *draft, _ *Rules) string {
	list := d.rest.objectData
	if len(list) > 0 && len(list) != d.objectCount {
		return msgObjectDataCount
	}
	for i := range list {
		if list[i].queryID != "" && !validQueryID(list[i].queryID) {
			return msgObjectDataQuery
		}
		q := list[i].quantity.number
		if q != math.Trunc(q) || q < math.MinInt32 || q > math.MaxInt32 {
			return msgObjectDataAmount
		}
	}
	return ""
}

// checkRest does not check prices and discounts: clients send "8$" and "30%".
func checkRest(d *draft, _ *Rules) string {
	c := d.rest.currency
	switch {
	case utf8.RuneCountInString(d.rest.value.text) > maxValueLen:
		return msgValueLong
	case c != "" && (len(c) != 3 || strings.IndexFunc(c, notLetter) >= 0):
		return msgCurrency
	case d.rest.agentID != "" && d.Type != InstantSearch:
		return msgAgentIDType
	case len(d.Denied) > maxDenied:
		return msgConsentLong
	case len(d.rest.eventID) > maxEventID:
		return msgEventIDLong
	}
	return ""
}

func notLetter(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}
