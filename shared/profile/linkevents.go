package profile

import (
	"context"
	"errors"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// CountEvents returns how many events of the anonymous token count for the known user by a link, within the
// retention, at most a number of them; more reports that there are more. It reads no block: the manifest says how many
// events those have that lie within the link, and the log of the token has the others.
func (i Identities) CountEvents(ctx context.Context, app config.App, l Link,
	most int) (n int, more bool, err error) {
	if l.Ended {
		return 0, false, nil
	}
	at := l.of.at
	own := exclusionOf(l.of.row)
	m := &member{user: user{token: l.Token}, cell: l.of.cell, types: l.known.OptedOut&^own.OptedOut != 0}
	known, err := consent.Parse([]byte(l.known.Consents))
	if err != nil {
		return 0, false, err
	}
	if err := at.env.setRow(ctx, app.ID, &m.user, excluding(l.of.row, own.With(l.known))); err != nil {
		return 0, false, err
	}
	t := m.row.Tombstone()
	m.window = affinity.Window{Now: at.env.now().UnixMilli(), RetentionDays: app.RetentionDays,
		DeletedUntil: t.DeletedUntil, ReceivedUntil: t.ReceivedUntil}
	m.consents = app.Purposes.Both(m.consents, known)
	m.setView(app.For(consent.Kept))
	m.intervals = []links.Interval{{Since: max(l.Since, m.windowStart().Time), To: l.To}}
	blocks, gaps := m.within(m.parts())
	for _, b := range blocks {
		if m.intervals[0].Since <= b.From.Time && b.Newest < l.To {
			n += b.Events
			continue
		}
		_, parts := cut(nil, []history.Range{b.Range}, m.intervals)
		gaps = append(gaps, parts...)
	}
	ranges := make([]store.UserRange, len(gaps))
	for i, g := range gaps {
		ranges[i] = store.UserRange{User: l.Token, From: g.From, To: g.To}
	}
	if n <= most {
		err = at.env.store.Events.Log(app.ID, app.Log).ReadObjects(ctx, ranges, func(_ string, row store.LogRow) error {
			if row.Excluded(m.row) || !keeps(m.view, row) || m.cell.Dropped(row.Time, row.Receipt()) {
				return nil
			}
			if n++; n > most {
				return errEnough
			}
			return nil
		})
	}
	if err != nil && !errors.Is(err, errEnough) {
		return 0, false, err
	}
	return min(n, most), n > most, nil
}
