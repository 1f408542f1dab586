package profile

import (
	"context"
	"slices"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/store"
)

// readChanged passes nil for the users whose rows still have the tickets of before, and
// reads the others.
func (r *reader) readChanged(ctx context.Context, app config.App, tickets map[string]int64,
	fn func(token string, stored []byte, ticket int64) error) error {
	var known, rest []string
	for token, ticket := range tickets {
		if ticket > 0 {
			known = append(known, token)
		} else {
			rest = append(rest, token)
		}
	}
	if app.Identity.Counts() { // a change of a token's links does not change its ticket
		rest, known = append(rest, known...), nil
	}
	slices.SortFunc(known, store.UserOrder)
	now, err := r.store.Users.ReadTickets(ctx, app.ID, known)
	if err != nil {
		return err
	}
	for _, token := range known {
		if ticket := tickets[token]; now[token] != ticket {
			rest = append(rest, token)
		} else if err := fn(token, nil, ticket); err != nil {
			return err
		}
	}
	return r.readStored(ctx, app, rest, fn)
}

// readStored reads users in groups, and passes their profiles to fn.
func (r *reader) readStored(ctx context.Context, app config.App, tokens []string,
	fn func(token string, stored []byte, ticket int64) error) error {
	failed, rest := Faulty{}, distinct(tokens)
	slices.SortFunc(rest, store.UserOrder)
	for len(rest) > 0 {
		group := rest[:min(len(rest), groupUsers)]
		rest = rest[len(group):]
		if err := r.passStored(ctx, app, group, failed, fn); err != nil {
			return err
		}
	}
	return failed.orNil()
}

// passStored does it for a group. What it takes from the gate of the process is for this
// group only.
func (r *reader) passStored(ctx context.Context, app config.App, group []string, failed Faulty,
	fn func(token string, stored []byte, ticket int64) error) error {
	part, end := admission.Part(ctx)
	defer end()
	encoded, tickets, err := r.storedOf(part, app, group, failed)
	if err != nil {
		return err
	}
	for _, token := range group {
		if len(encoded[token]) == 0 {
			continue
		}
		if err := fn(token, encoded[token], tickets[token]); err != nil {
			return err
		}
	}
	return nil
}

// storedOf returns the profiles of a group: those that are stored at the newest ticket
// and valid, and computed ones of the other users. It also returns the tickets of the rows
// before that.
func (r *reader) storedOf(ctx context.Context, app config.App, group []string,
	failed Faulty) (map[string][]byte, map[string]int64, error) {
	encoded, rows := make(map[string][]byte, len(group)), make(map[string]store.User, len(group))
	tickets := make(map[string]int64, len(group))
	var stale []string
	err := r.store.Users.ScanPrimary(ctx, app.ID, group, func(token string, row store.User) error {
		if err := admission.Take(ctx, rowBytes(row)); err != nil {
			return err
		}
		tickets[token] = row.Ticket
		use, err := r.useOf(app, token, row)
		if err != nil {
			r.logFault(ctx, app.ID, token, err)
			failed[token] = err
			return nil
		}
		switch _, ok := r.validAtTicket(row, app, r.now().UnixMilli()); {
		case row.Gone() || row.Ticket == 0 || use == consent.None || absorbed(app, token, row):
		case ok && use == consent.All:
			encoded[token] = row.Profile
		default:
			row.Profile = nil
			rows[token], stale = row, append(stale, token)
		}
		return nil
	})
	if err != nil || len(stale) == 0 {
		return encoded, tickets, err
	}
	faulty, err := r.computeAndStore(ctx, app, stale, rows, func(token string, result Result) error {
		encoded[token] = result.AppendBinary(nil)
		return nil
	})
	for token, fault := range faulty {
		r.logFault(ctx, app.ID, token, fault)
		failed[token] = fault
	}
	return encoded, tickets, err
}

// validAtTicket reports whether the profile of a row is valid, counts every event whose
// writer has drawn a ticket, and carries the scoring version itself, and whether its
// user is known.
func (v *env) validAtTicket(row store.User, app config.App, now int64) (known, ok bool) {
	if row.ProfileTicket < row.Ticket || len(row.Profile) == 0 {
		return false, false
	}
	p, err := affinity.ParseProfile(row.Profile, 1)
	return p.Known, err == nil && p.StrategyVersion == app.ScoringVersion && v.valid(p, app, row, now)
}
