package export

import (
	"regexp"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// The words of lines, each at the place of its value.
var (
	linkStates  = [...]string{links.Live: "live", links.Void: "void", links.Dead: "dead"}
	linkSources = [...]string{links.FromEvent: "event", links.FromRequest: "request", links.FromCall: "call"}
)

// NewLinks returns the line that says how a token is linked, and whether there is anything to say.
func NewLinks(user string, row store.User) (api.ExportLine, bool, error) {
	c, err := links.Parse(row.Links)
	if err != nil || c.Role == links.None {
		return api.ExportLine{}, false, err
	}
	l := &api.ExportedLinks{UserToken: user, Role: c.Role.String(), OptedOutBy: c.OutBy}
	if c.Role == links.Anonymous && row.DeletedUntil != 0 {
		d := NewDeletion(user, row.Deleted(), 0).Deletion
		l.DeletedUntil, l.ReceivedUntil = &d.DeletedUntil, &d.ReceivedUntil
	}
	for _, e := range c.Entries {
		l.Entries = append(l.Entries, newLinkEntry(e))
	}
	for _, t := range c.List {
		l.Tokens = append(l.Tokens, api.ExportedLinked{UserToken: t.Token, At: api.AtMillis(t.At), Shut: unless(t.Shut, 0)})
	}
	return api.ExportLine{Links: l}, true, nil
}

func newLinkEntry(e links.Entry) api.ExportedLinkEntry {
	l := api.ExportedLinkEntry{
		AuthenticatedUserToken: e.Known, State: linkStates[e.State], Since: api.AtMillis(e.Since),
		To: unless(e.To, links.Open), From: api.AtMillis(e.From), ReceivedAt: api.AtMillis(e.At), Strength: "strong",
		By: linkSources[e.Source], Evidence: e.By, Key: e.Key, Limited: e.Limited, Was: unless(e.Was, links.Open),
	}
	if e.Weak {
		l.Strength = "weak"
	}
	if e.State != links.Live {
		l.DeletedUntil, l.ReceivedUntil = unless(e.Until.DeletedUntil, 0), unless(e.Until.ReceivedUntil, 0)
	}
	return l
}

// unless returns a time (ms), or nil for the one that stands for none.
func unless(ms, none int64) *api.Time {
	if ms == none {
		return nil
	}
	t := api.AtMillis(ms)
	return &t
}

func millis(t *api.Time, none int64) int64 {
	if t == nil {
		return none
	}
	return t.UnixMilli()
}

const maxEvidence = 1000 // bytes of what evidence is by

// keyForm is that of the ID of a key.
var keyForm = regexp.MustCompile(`^([0-9a-f]{12})?$`)

// Links returns what a line says that is restored now. The errors say what is wrong with the line.
func Links(l *api.ExportedLinks, now time.Time) (links.Copy, error) {
	c := links.Copy{Deleted: affinity.Tombstone{DeletedUntil: millis(l.DeletedUntil, 0),
		ReceivedUntil: millis(l.ReceivedUntil, 0)}}
	c.OutBy = l.OptedOutBy
	latest := now.Add(event.MaxAhead).UnixMilli()
	switch {
	case !event.ValidUserToken(l.UserToken) || c.OutBy != "" && !linkable(l.UserToken, c.OutBy):
		return c, fault.New(fault.Invalid, "The userToken or the optedOutBy of exported links is no user token")
	case len(l.Entries) > links.MaxEntries || len(l.Tokens) > links.MaxEntries:
		return c, fault.New(fault.Invalid, "A token can have at most %d exported links", links.MaxEntries)
	case !within(latest, c.Deleted.DeletedUntil, c.Deleted.ReceivedUntil):
		return c, fault.New(fault.Invalid, "The deletion of exported links must have times from 1970 until now")
	}
	switch {
	case l.Role == links.Anonymous.String() && len(l.Tokens) == 0:
		c.Role = links.Anonymous
	case l.Role == links.Known.String() && len(l.Entries) == 0 && c.OutBy == "":
		c.Role = links.Known
	default:
		return c, fault.New(fault.Invalid, "Exported links are those of an anonymous token, with entries, or of a known "+
			"one, with tokens")
	}
	for i := range l.Entries {
		e, ok := linkEntry(&l.Entries[i], latest)
		if !ok || !linkable(l.UserToken, e.Known) {
			return c, fault.New(fault.Invalid, "Entry %d of exported links is none that a dump has", i+1)
		}
		c.Entries = append(c.Entries, e)
	}
	for i, t := range l.Tokens {
		of := links.Listed{Token: t.UserToken, At: t.At.UnixMilli(), Shut: millis(t.Shut, 0)}
		twice := slices.ContainsFunc(c.List, func(o links.Listed) bool { return o.Token == of.Token })
		if twice || !linkable(l.UserToken, of.Token) || !within(latest, of.At, of.Shut) {
			return c, fault.New(fault.Invalid, "Token %d of exported links is none that a dump has", i+1)
		}
		c.List = append(c.List, of)
	}
	return c, nil
}

func linkable(token, other string) bool {
	return event.ValidUserToken(other) && !links.NamesNobody(other) && other != token
}

// within reports whether all times are from 1970 until one.
func within(latest int64, times ...int64) bool {
	return !slices.ContainsFunc(times, func(t int64) bool { return t < 0 || t > latest })
}

// linkEntry returns the entry of a line, and whether it can be one.
func linkEntry(l *api.ExportedLinkEntry, latest int64) (links.Entry, bool) {
	state, source := slices.Index(linkStates[:], l.State), slices.Index(linkSources[:], l.By)
	if state < 0 || source < 0 || l.Strength != "strong" && l.Strength != "weak" || len(l.Evidence) > maxEvidence ||
		!keyForm.MatchString(l.Key) {
		return links.Entry{}, false
	}
	e := links.Entry{
		Known: l.AuthenticatedUserToken, Since: l.Since.UnixMilli(), To: millis(l.To, links.Open), From: l.From.UnixMilli(),
		At: l.ReceivedAt.UnixMilli(), Source: links.Source(source), By: l.Evidence, Weak: l.Strength == "weak", Key: l.Key,
		Limited: l.Limited, State: links.State(state), Was: millis(l.Was, links.Open),
		Until: affinity.Tombstone{DeletedUntil: millis(l.DeletedUntil, 0), ReceivedUntil: millis(l.ReceivedUntil, 0)},
	}
	ended := e.State == links.Live || e.Until.ReceivedUntil > 0
	// An end can be later than now: the clock of a later sign-in may have been ahead.
	return e, ended && e.Since <= e.To && e.Since <= e.Was && e.To > 0 && e.Was > 0 &&
		within(latest, e.Since, e.From, e.At, e.Until.DeletedUntil, e.Until.ReceivedUntil)
}
