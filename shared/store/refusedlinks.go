package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"cloud.google.com/go/bigtable"
)

// RefusedLink is an event that names two tokens and does not link them.
type RefusedLink struct {
	// User and Known are the anonymous token, and that of the user who has signed in; empty if nothing but the
	// reason may be kept.
	User, Known string
	Time        int64  // of the event (ms)
	Event       string // its ID, or that of the message of a call
	Reason      string
	// At is when the link was refused, and Sequence orders refusals: a later one has a higher number.
	At       time.Time
	Sequence int64
}

// linkEvidence is the event of the Refusal of a link. ForgetRefused knows the names of the tokens.
type linkEvidence struct {
	User  string `json:"userToken"`
	Known string `json:"authenticatedUserToken"`
	Time  int64  `json:"time"`
	ID    string `json:"id"`
}

// Refusal returns what the table keeps of the link.
func (l RefusedLink) Refusal() Refused {
	event, _ := json.Marshal(linkEvidence{l.User, l.Known, l.Time, l.Event}) // texts and a number: it does not fail
	return Refused{At: l.At, Reason: l.Reason, Event: event, Sequence: l.Sequence}
}

// RecordRefusedLinks is RecordRefused for links.
func (s RefusedTable) RecordRefusedLinks(ctx context.Context, app string, at time.Time, r Refusals) error {
	return s.record(ctx, app, linksKey(app, rand.IntN(refusedRows)), at, r)
}

// ReadRefusedLinks returns refused links of an app, the newest first, and the number of all of them by day and
// reason, of the last RefusedDays days. Of a reason it returns the last RefusedOfReason ones at least.
func (s RefusedTable) ReadRefusedLinks(ctx context.Context, app string,
	now time.Time) ([]RefusedLink, map[string]map[string]int64, error) {
	ring, days, err := s.read(ctx, app, bigtable.PrefixRange(app+",links,"), now)
	if err != nil {
		return nil, nil, fmt.Errorf("read refused links of %s: %w", app, err)
	}
	list := []RefusedLink{}
	for reason, of := range ring {
		for _, r := range of {
			var e linkEvidence
			if err := json.Unmarshal(r.Event, &e); err != nil {
				continue // only its count was kept
			}
			list = append(list, RefusedLink{User: e.User, Known: e.Known, Time: e.Time, Event: e.ID, Reason: reason,
				At: r.At, Sequence: r.Sequence})
		}
	}
	slices.SortFunc(list, func(a, b RefusedLink) int {
		return cmp.Or(cmp.Compare(b.Sequence, a.Sequence), cmp.Compare(a.User, b.User), cmp.Compare(a.Known, b.Known))
	})
	return list, days, nil
}
