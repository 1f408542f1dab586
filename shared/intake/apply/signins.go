package apply

import (
	"context"

	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/profile"
)

// signedIn links the tokens of a message of sign-ins.
func (a *Applier) signedIn(ctx context.Context, m bus.Message) (Result, error) {
	app, err := a.app(ctx, m.App)
	if err != nil {
		return Result{}, err
	}
	all, err := m.SignIns()
	if err != nil {
		return Result{}, permanent{err}
	}
	signIns := make([]profile.SignIn, len(all))
	for i, s := range all {
		signIns[i] = profile.SignIn{User: s.User, Known: s.Known, Time: s.Time, Receipt: m.Receipt(), MessageID: s.MessageID,
			Strong: m.Evidence == bus.StrongEvidence, KeyID: m.Key}
	}
	if err := a.Identities.SignedIn(ctx, app, signIns); err != nil {
		return Result{}, err
	}
	return Result{Fate: Applied, App: app.ID, Kind: m.Kind, ReceivedAt: m.ReceivedAt, Lane: m.Lane}, nil
}
