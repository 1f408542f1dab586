package profile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/store"
)

// listTime is after how long a page of links ends, with what it has.
const listTime = 10 * time.Second

// LinkPage is a part of the links of an app.
type LinkPage struct {
	// Links are in the order of the rows of their anonymous tokens, those of a token in that of its entries.
	Links []Link
	// Faulty are tokens whose rows cannot be read.
	Faulty []string
	// Next is the token behind which other rows may follow, "" at the end.
	Next string
}

// ListLinks returns links by the entries that wanted takes, of the tokens behind after, "" for all. The page ends with
// the token with which it has limit links, after so many rows, or after some seconds: it may be empty, and others may
// follow.
func (i Identities) ListLinks(ctx context.Context, app config.App, after string, rows, limit int,
	wanted func(*links.Entry) bool) (LinkPage, error) {
	at, err := i.engine.at(app)
	if err != nil {
		return LinkPage{}, err
	}
	page, began, read := LinkPage{}, time.Now(), 0
	err = at.scanRows(ctx, app, after, rows+1, func(token string, of place) error {
		if token == after {
			return nil
		}
		read++
		page.add(app.ID, token, of, wanted)
		if page.Next = token; read == rows || len(page.Links) >= limit || time.Since(began) > listTime {
			return errPageFull
		}
		return nil
	})
	switch {
	case err == nil:
		page.Next = ""
	case !errors.Is(err, errPageFull):
		return LinkPage{}, err
	}
	return page, at.env.endLinks(ctx, app, page.Links)
}

// errPageFull ends the scan of a page.
var errPageFull = errors.New("the page is full")

// add adds the links of a row.
func (p *LinkPage) add(appID, token string, at place, wanted func(*links.Entry) bool) {
	if len(at.row.Links) == 0 {
		return
	}
	cell, err := linksOf(appID, token, at.row)
	if err != nil {
		p.Faulty = append(p.Faulty, token)
		return
	}
	of := &tokenRow{at, cell}
	for i := range cell.Entries {
		if wanted(&cell.Entries[i]) {
			p.Links = append(p.Links, Link{Token: token, Entry: cell.Entries[i], of: of})
		}
	}
}

// endLinks reads the rows of the known users of links, and completes the links.
func (v *env) endLinks(ctx context.Context, app config.App, all []Link) error {
	known := make([]string, len(all))
	for i := range all {
		known[i] = all[i].Known
	}
	if len(known) == 0 {
		return nil
	}
	rows, err := v.placesOf(ctx, app, known, store.UserState)
	if err != nil {
		return fmt.Errorf("read the known users of links: %w", err)
	}
	for i := range all {
		l := &all[i]
		l.known = exclusionOf(rows[l.Known].row)
		l.Ended = !l.Counts(exclusionOf(l.of.row), l.known)
	}
	return nil
}
