package event

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// draft is an event that is decoded but not yet validated. A null or an empty
// string equals an absent field. The counts are those of the lists as sent;
// items beyond a list's limit are not kept.
type draft struct {
	Event
	typeFault   string // message about the first value with a wrong type
	wrong       string // the field of that value
	timestamp   string // the number's literal; of history, the text of any time
	rawFilters  []string
	objectCount int
	filterCount int
	rest        details
}

// eventField reads one field of an event.
func (p *parser) eventField(name string) error {
	d := &p.draft
	p.field, p.member = name, ""
	switch name {
	case "eventType":
		return p.optionalString((*string)(&d.Type))
	case "eventName":
		return p.optionalString(&d.Name)
	case "eventSubtype":
		return p.optionalString(&d.Subtype)
	case "index":
		return p.optionalString(&d.Index)
	case "userToken":
		return p.optionalString(&d.UserToken)
	case "authenticatedUserToken":
		return p.optionalString(&d.AuthenticatedUserToken)
	case "queryID":
		return p.optionalString(&d.QueryID)
	case "currency":
		return p.optionalString(&d.rest.currency)
	case "eventId":
		return p.optionalString(&d.rest.eventID)
	case "agentID":
		return p.optionalString(&d.rest.agentID)
	case "consent":
		return p.consent()
	case "timestamp":
		return p.timestamp()
	case "objectIDs":
		return p.stringList(&d.ObjectIDs, &d.objectCount)
	case "filters":
		return p.stringList(&d.rawFilters, &d.filterCount)
	case "positions":
		return p.positions()
	case "objectData":
		return p.objectData()
	case "value":
		return p.scalar(&d.rest.value)
	default:
		return p.dec.SkipValue()
	}
}

// consent reads what an event says that it may be used for: names with true and false, or "granted" and "denied" as
// Google's consent mode has them. A name that is there twice is denied if it is once.
func (p *parser) consent() error {
	p.draft.Denied = nil
	switch kind := p.dec.PeekKind(); kind {
	case jsontext.KindBeginObject:
	case jsontext.KindNull:
		return p.dec.SkipValue()
	default:
		return p.wrongType("object", kind)
	}
	return p.object(func(p *parser, name string) error {
		value, err := p.dec.ReadValue()
		switch string(value) {
		case "false", `"denied"`:
			if len(p.draft.Denied) <= maxDenied {
				p.draft.Denied = append(p.draft.Denied, name)
			}
		case "true", `"granted"`, "null":
		default:
			p.noteType("boolean, granted or denied", value.Kind())
		}
		return err
	})
}

func (p *parser) timestamp() error {
	if p.rules.History {
		value, err := p.dec.ReadValue()
		end := int(p.dec.InputOffset())
		p.times = append(p.times, [2]int{end - len(value), end})
		switch value.Kind() {
		case jsontext.KindNull, jsontext.KindInvalid:
			p.draft.timestamp = ""
		case jsontext.KindString:
			p.draft.timestamp = p.unquote(value)
		default:
			p.draft.timestamp = p.source(value)
		}
		return err
	}
	p.draft.timestamp = ""
	if p.dec.PeekKind() == jsontext.KindNull {
		return p.dec.SkipValue()
	}
	return p.number(&p.draft.timestamp)
}

// stringList reads a list of objectIDs or filters. All lists of a batch share
// the parser's slice of strings.
func (p *parser) stringList(dst *[]string, count *int) error {
	start := len(p.strings)
	*count = 0
	err := p.array(func(p *parser) error {
		var s string
		if err := p.string(&s); err != nil {
			return err
		}
		*count++
		if *count <= maxTargets {
			p.strings = append(p.strings, s)
		}
		return nil
	})
	end := len(p.strings)
	*dst = p.strings[start:end:end]
	return err
}

func (p *parser) positions() error {
	positions := &p.draft.rest.positions
	*positions = nil
	return p.array(func(p *parser) error {
		if len(*positions) > maxTargets { // already more than objectIDs are allowed
			return p.dec.SkipValue()
		}
		var literal string
		if err := p.number(&literal); err != nil || literal == "" {
			return err
		}
		n, ok := integer(literal)
		if !ok {
			p.noteType("integer", jsontext.KindNumber)
		}
		*positions = append(*positions, n)
		return nil
	})
}

func (p *parser) objectData() error {
	list := &p.draft.rest.objectData
	*list = nil
	return p.array(func(p *parser) error {
		if len(*list) > maxTargets {
			return p.dec.SkipValue()
		}
		*list = append(*list, objectData{})
		p.member = ""
		switch kind := p.dec.PeekKind(); kind {
		case jsontext.KindBeginObject:
			return p.object((*parser).objectDataField)
		case jsontext.KindNull: // a hole in a JavaScript array
			return p.dec.SkipValue()
		default:
			return p.wrongType("object", kind)
		}
	})
}

func (p *parser) objectDataField(name string) error {
	list := p.draft.rest.objectData
	entry := &list[len(list)-1]
	p.member = name
	switch name {
	case "queryID":
		return p.optionalString(&entry.queryID)
	case "price":
		return p.scalar(&entry.price)
	case "discount":
		return p.scalar(&entry.discount)
	case "quantity":
		if kind := p.dec.PeekKind(); kind != jsontext.KindNumber && kind != jsontext.KindNull {
			return p.wrongType("number", kind)
		}
		return p.scalar(&entry.quantity)
	default:
		return p.dec.SkipValue()
	}
}

// integer parses a JSON number that is whole, 1.7e12 included.
func integer(literal string) (int64, bool) {
	if n, err := strconv.ParseInt(literal, 10, 64); err == nil {
		return n, true
	}
	f := float(literal)
	if f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}

// float parses a JSON number. A number out of range becomes an infinity.
func float(literal string) float64 {
	f, _ := strconv.ParseFloat(literal, 64) // the only error for a JSON number is the range
	return f
}
