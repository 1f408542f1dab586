package profile

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
)

// SignIn is evidence without an event: a call of an SDK says that Known has signed in under User.
type SignIn struct {
	User, Known   string
	Time, Receipt int64  // ms
	MessageID     string // of the call; may be empty
	// Strong means that it came with a key which may say so of anybody, or of Known.
	Strong bool
	KeyID  string // of that key
}

// SignedIn links tokens by sign-ins, as events with both tokens do. A second delivery changes nothing. If the app
// links no tokens, it does nothing.
//
// It takes one after the other, by time: a batch may have an identify call that names a user, and then an
// alias call of that user, which must be refused.
func (i Identities) SignedIn(ctx context.Context, app config.App, signIns []SignIn) error {
	if !app.Identity.On() {
		return nil
	}
	at, err := i.engine.at(app)
	if err != nil {
		return err
	}
	signIns = slices.Clone(signIns)
	slices.SortStableFunc(signIns, func(a, b SignIn) int { return cmp.Compare(a.Time, b.Time) })
	var failed []error // a user who cannot be read keeps nobody else from signing in: no log has what the message says
	for _, s := range signIns {
		if err := at.writer.linker.signIn(ctx, app, s); err != nil {
			failed = append(failed, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

func (l *linker) signIn(ctx context.Context, app config.App, s SignIn) error {
	e := links.Evidence{Known: s.Known, Time: s.Time, Receipt: s.Receipt, Source: links.FromCall, By: s.MessageID,
		Weak: !s.Strong, Key: s.KeyID}
	if s.User == s.Known || !l.accepts(app, s.User, e) {
		return nil
	}
	err := l.linkUnlogged(ctx, app, s.User, func() links.Evidence { return e })
	if _, refused := errors.AsType[LinkRefused](err); refused {
		return nil
	}
	return err
}
