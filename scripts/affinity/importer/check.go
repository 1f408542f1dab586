package importer

import (
	"bytes"
	"errors"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/intake/archive"
	"github.com/affinityengine/affinity/shared/intake/export"
	"github.com/affinityengine/affinity/shared/score/consent"
)

// checkEvents answers as an engine does that imports lines, but knows no app.
func checkEvents(lines []byte, rules event.Rules) api.ImportAnswer {
	return check(lines, func(text []byte, answer *api.ImportAnswer) error {
		exported, own, err := export.Parse(text)
		switch {
		case err != nil:
			return err
		case !own:
			e, err := event.Decode(text, rules)
			if err == nil && e.Received {
				answer.Received++
			}
			return taken(err, &answer.Accepted)
		case exported.Deletion != nil:
			return fault.New(fault.Invalid, "A deletion can only be imported with receipts=kept")
		case exported.Consents != nil:
			return fault.New(fault.Invalid, "Consents can only be imported with receipts=kept")
		case exported.Links != nil:
			return fault.New(fault.Invalid, "Links can only be imported with receipts=kept")
		case exported.Report != nil:
			return taken(nil, &answer.Reports)
		case exported.Event == nil:
			return export.Refusal(exported)
		}
		_, err = export.LogEvent(exported.Event, rules.Now)
		return taken(err, &answer.Accepted)
	})
}

// checkRestored answers as an engine does that restores lines of an export.
func checkRestored(lines []byte, now time.Time) api.ImportAnswer {
	return check(lines, func(text []byte, answer *api.ImportAnswer) error {
		exported, _, err := export.Parse(text)
		switch {
		case err != nil:
			return err
		case exported.Deletion != nil:
			_, _, err = export.Deletion(exported.Deletion, now)
			return taken(err, &answer.UserDeletions)
		case exported.Consents != nil:
			return taken(checkConsents(exported.Consents, now), &answer.UserConsents)
		case exported.Links != nil:
			_, err = export.Links(exported.Links, now)
			return taken(err, &answer.UserLinks)
		case exported.Event == nil:
			return export.Refusal(exported)
		}
		_, err = archive.Decode(exported.Event, now)
		return taken(err, &answer.Accepted)
	})
}

func check(lines []byte, one func(text []byte, answer *api.ImportAnswer) error) (answer api.ImportAnswer) {
	number := 0
	for text := range bytes.Lines(lines) {
		number++
		if err := one(bytes.TrimSuffix(text, []byte("\n")), &answer); err != nil {
			message := err.Error()
			if refusal, ok := errors.AsType[*event.Refusal](err); ok {
				message = refusal.Message
			}
			answer.Refused = append(answer.Refused, api.RefusedLine{Line: number, Message: message})
		}
	}
	return answer
}

// taken counts what is not refused.
func taken(err error, count *int) error {
	if err == nil {
		*count++
	}
	return err
}

// checkConsents checks a line as an engine does whose app has the purposes that the line names.
func checkConsents(l *api.ExportedConsents, now time.Time) error {
	var s consent.Setting
	for i, p := range l.Purposes {
		s.Purposes = append(s.Purposes, consent.Purpose{Name: p.Name, Number: uint8(i)})
	}
	_, err := export.Consents(l, s, now)
	return err
}
