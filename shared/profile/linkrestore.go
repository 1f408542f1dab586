package profile

import (
	"context"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
)

// Restore adds the links of a dump to the row of a token, and marks the users whom they concern, also if the app links
// no tokens. It changes no link that the row has: restored again, a dump changes nothing. It returns how many links
// it has left out, as links.Cell.Restore says. The error is of type LinkRefused if the token has another role here.
func (i Identities) Restore(ctx context.Context, app config.App, token string, from links.Copy) (left int, err error) {
	at, err := i.engine.resting(app)
	if err != nil {
		return 0, err
	}
	l := at.writer.linker
	if from.Role == links.Known {
		return 0, l.restoreList(ctx, app, token, from.List)
	}
	return l.restoreEntries(ctx, app, token, from)
}

func (l *linker) restoreList(ctx context.Context, app config.App, known string, list []links.Listed) error {
	refused := false
	_, err := l.changeLinks(ctx, app, known, func(cell links.Cell, _ links.Exclusion) (links.Cell, bool) {
		if refused = cell.Role == links.Anonymous; refused {
			return cell, false
		}
		return cell.RestoreList(list)
	})
	if err == nil && refused {
		err = LinkRefused{links.UserIsAnonymous}
	}
	return err
}

// restoreEntries keeps the order of a link: the list, the entry, the mark. A sweep may take the token off a list
// before its entry is there. So it looks at the lists once more after the marks: a later sweep sees the entry.
func (l *linker) restoreEntries(ctx context.Context, app config.App, token string, from links.Copy) (int, error) {
	lists, added, err := l.relist(ctx, app, token, from)
	if err != nil {
		return 0, err
	}
	left, refused := 0, false
	of, err := l.changeLinks(ctx, app, token, func(cell links.Cell, x links.Exclusion) (links.Cell, bool) {
		if refused = cell.Role == links.Known; refused {
			return cell, false
		}
		next, changed, without := cell.Restore(from, x, func(known string) bool { return lists[known] })
		left = without
		return next, changed
	})
	switch {
	case err != nil:
		return 0, err
	case refused:
		return 0, LinkRefused{links.TokenIsKnown}
	}
	// Also what an attempt before this one has left.
	if err := l.markOwed(ctx, app, token, of, func(links.Owed) bool { return true }); err != nil {
		return 0, err
	}
	_, again, err := l.relist(ctx, app, token, from)
	if err != nil {
		return 0, err
	}
	for _, known := range append(added, again...) {
		if _, err := l.mark(ctx, app, known); err != nil {
			return 0, err
		}
	}
	return left, of.list(ctx, app, token)
}

// relist lists a token in the rows of the known users who need it. It returns which of these rows list it, and which
// did not before.
func (l *linker) relist(ctx context.Context, app config.App, token string, from links.Copy) (
	lists map[string]bool, added []string, err error) {
	lists = map[string]bool{}
	for known, at := range from.Needs() {
		_, err := l.changeLinks(ctx, app, known, func(cell links.Cell, _ links.Exclusion) (links.Cell, bool) {
			has, _ := cell.Lists(token)
			lists[known] = has || cell.Role != links.Anonymous && len(cell.List) < links.MaxEntries
			if has || !lists[known] {
				return cell, false
			}
			added = append(added, known)
			return cell.Relist(token, at), true
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return lists, added, nil
}
