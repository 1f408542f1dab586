package export

import (
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
)

// NewConsents returns the line of what a user has said of the purposes of an app, and whether there is anything to say.
func NewConsents(user string, s consent.Setting, c consent.Consents) (api.ExportLine, bool) {
	l := &api.ExportedConsents{UserToken: user}
	for _, p := range s.Purposes {
		i := slices.IndexFunc(c, func(c consent.Consent) bool { return c.Purpose == p.Number })
		if i < 0 {
			continue
		}
		one := api.ExportedConsent{Name: p.Name, AskedAt: api.AtMillis(c[i].Asked),
			Since: unless(c[i].Since.DeletedUntil, 0), ReceivedUntil: unless(c[i].Since.ReceivedUntil, 0)}
		if c[i].State != consent.Default {
			one.Granted = new(c[i].State == consent.Granted)
		}
		l.Purposes = append(l.Purposes, one)
	}
	return api.ExportLine{Consents: l}, len(l.Purposes) > 0
}

// Consents returns what a line says that is imported now into an app with these purposes. The errors say what is wrong
// with the line.
func Consents(l *api.ExportedConsents, s consent.Setting, now time.Time) (consent.Consents, error) {
	if !event.ValidUserToken(l.UserToken) {
		return nil, fault.New(fault.Invalid, "The userToken of exported consents is none")
	}
	var c consent.Consents
	latest := now.Add(event.MaxAhead).UnixMilli()
	for _, of := range l.Purposes {
		i := slices.IndexFunc(s.Purposes, func(p consent.Purpose) bool { return p.Name == of.Name })
		if i < 0 {
			return nil, fault.New(fault.Invalid, "The app has no purpose %.100q: its operator sets it with "+
				"affinity app purposes", of.Name)
		}
		one := consent.Consent{Purpose: s.Purposes[i].Number, Asked: of.AskedAt.UnixMilli()}
		if of.Granted != nil && *of.Granted {
			one.State = consent.Granted
		} else if of.Granted != nil {
			one.State = consent.Withdrawn
		}
		if of.Since != nil && of.ReceivedUntil != nil {
			one.Since = affinity.Tombstone{DeletedUntil: of.Since.UnixMilli(), ReceivedUntil: of.ReceivedUntil.UnixMilli()}
		}
		if (of.Since == nil) != (of.ReceivedUntil == nil) || one.Asked < 0 || one.Asked > latest ||
			one.Since.DeletedUntil < 0 || one.Since.ReceivedUntil < one.Since.DeletedUntil ||
			one.Since.ReceivedUntil > latest+event.MaxAhead.Milliseconds() {
			return nil, fault.New(fault.Invalid, "Exported consents must have times from 1970 until now, and since with "+
				"receivedUntil, which must not be before it")
		}
		c = append(c, one)
	}
	slices.SortFunc(c, func(a, b consent.Consent) int { return int(a.Purpose) - int(b.Purpose) })
	for i := 1; i < len(c); i++ {
		if c[i].Purpose == c[i-1].Purpose {
			return nil, fault.New(fault.Invalid, "Exported consents must name a purpose once")
		}
	}
	return c, nil
}
