package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// linked is what a row says of links.
type linked struct {
	row  store.User
	cell links.Cell
}

// linkedTo reads the rows that the links of users name: of the tokens of their lists, and of the known users of
// their entries. It returns them with those of the users. Rows whose links do not parse are left out.
func (r *run) linkedTo(ctx context.Context, rows map[string]store.User) (map[string]linked, error) {
	if !r.app.Identity.On() {
		return nil, nil
	}
	all, named := map[string]linked{}, map[string]bool{}
	add := func(rows map[string]store.User) {
		for token, row := range rows {
			row.Profile = nil
			if cell, err := links.Parse(row.Links); err == nil && len(row.Links) > 0 {
				all[token] = linked{row, cell}
			}
		}
	}
	add(rows)
	for _, l := range all {
		for _, token := range l.cell.Tokens() {
			named[token] = true
		}
		for _, e := range l.cell.Entries {
			named[e.Known] = true
		}
	}
	maps.DeleteFunc(named, func(token string, _ bool) bool { _, known := rows[token]; return known })
	if len(named) == 0 {
		return all, nil
	}
	others, err := r.rows(ctx, slices.Sorted(maps.Keys(named)))
	if err == nil {
		add(others)
	}
	return all, err
}

// checkLinks reports what no row may say: that two entries of a token hold the same instant, and that an entry
// names a known user whose list lacks the token, so that no computation of the user would find it.
func (rd *reading) checkLinks(all map[string]linked) {
	own, known := all[rd.user]
	if _, err := links.Parse(rd.row.Links); err != nil {
		rd.differ(Difference{Which: "links", What: "damaged", Got: err.Error()})
	}
	if !known {
		return
	}
	var live []links.Entry
	for _, e := range own.cell.Entries {
		if !counts(&e, own.row) {
			continue
		}
		for _, other := range live {
			if e.Since < other.To && other.Since < e.To {
				rd.differ(Difference{Which: "links", What: "overlap", Value: other.Known + " and " + e.Known})
			}
		}
		live = append(live, e)
		of := all[e.Known]
		if listed := slices.Contains(of.cell.Tokens(), rd.user); !listed && counts(&e, of.row) {
			rd.differ(Difference{Which: "links", What: "unlisted", Value: e.Known})
		}
	}
}

// counts reports whether an entry is a link as far as a row says that it is that of one of the two tokens.
func counts(e *links.Entry, row store.User) bool {
	return e.State == links.Live && e.At > row.ReceivedUntil && !row.Gone()
}

// others returns the tokens whose events may count for a user.
func (rd *reading) others(r *run, all map[string]linked) []string {
	of, ok := all[rd.user]
	if !ok || !r.app.Identity.Counts() || of.row.Gone() {
		return nil
	}
	return slices.DeleteFunc(of.cell.Tokens(), func(token string) bool {
		return !slices.ContainsFunc(all[token].cell.Entries, func(e links.Entry) bool { return e.Known == rd.user })
	})
}

// countsFor reports whether an event of a token counts for a known user.
func (l *linked) countsFor(user string, of store.User, row store.LogRow) bool {
	if row.Excluded(l.row) || l.drops(row) {
		return false
	}
	return slices.ContainsFunc(l.cell.Entries, func(e links.Entry) bool {
		return e.Known == user && e.Since <= row.Time && row.Time < e.To && counts(&e, l.row) && counts(&e, of)
	})
}

// drops reports whether an event of a token was deleted with a known user.
func (l *linked) drops(row store.LogRow) bool {
	return slices.ContainsFunc(l.cell.Entries, func(e links.Entry) bool {
		return e.State == links.Dead && e.Since <= row.Time && row.Time < e.Was && e.Until.Covers(row.Time, row.Receipt())
	})
}

// readPerson passes the events of a user's own log, and those of other tokens that count for the user, to the
// reading, and compares it.
func (r *run) readPerson(ctx context.Context, layout schema.Layout, rd *reading, all map[string]linked) error {
	for _, token := range append([]string{rd.user}, rd.others(r, all)...) {
		from := all[token]
		if rd.log.view = r.view(rd.row, nil); token != rd.user {
			rd.log.view = r.view(rd.row, &from.row)
		}
		one := []store.UserRange{{User: token, To: history.End}}
		err := r.store.ReadLog(ctx, r.app.ID, layout, one, func(_ string, row store.LogRow) error {
			switch {
			case token != rd.user && !from.countsFor(rd.user, rd.row, row):
				return nil
			case deleted(rd.row.Deleted(), row), token == rd.user && from.drops(row):
				return nil
			}
			return rd.log.add(row)
		})
		if err != nil {
			return fmt.Errorf("read the log of %s for %s: %w", token, rd.user, err)
		}
	}
	rd.end()
	return nil
}
