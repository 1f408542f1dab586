package apply_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/apply"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
)

// link has the app link tokens.
func (h *harness) link() {
	h.t.Helper()
	for _, mode := range []config.IdentityMode{config.IdentityCollect, config.IdentityLink} {
		_, err := h.apps.SetIdentity(h.t.Context(), appID, config.Identity{Mode: mode, Lookback: time.Hour}, 0)
		h.check(err)
	}
}

// login is a message of a call that says that a user has signed in under an anonymous token.
func (h *harness) login(token, known string, evidence bus.Evidence) bus.Message {
	h.t.Helper()
	m, err := bus.NewSignIns(appID, received, evidence, "5b1f0a9c77de", []bus.SignIn{{User: token, Known: known, Time: received.UnixMilli(), MessageID: "m-1"}})
	h.check(err)
	return m
}

func (h *harness) entries(token string) []links.Entry {
	h.t.Helper()
	app, err := h.apps.App(h.t.Context(), appID)
	h.check(err)
	p, err := profile.IdentitiesOf(h.profiles).Of(h.t.Context(), app, token)
	h.check(err)
	var all []links.Entry
	for _, l := range p.Links {
		all = append(all, l.Entry)
	}
	return all
}

// A message of a sign-in links the tokens at each delivery but those after an unlink.
func TestSignInIsApplied(t *testing.T) {
	h := newHarness(t)
	h.deliver(seen(one))
	want := apply.Result{Fate: apply.Applied, App: appID, Kind: bus.SignedIn, ReceivedAt: received.UnixMilli()}
	if got := h.deliver(h.login(user, "eve", bus.StrongEvidence)); got != want || len(h.entries(user)) != 0 {
		t.Errorf("an app that links no tokens: %+v, %+v", got, h.entries(user))
	}
	h.link()
	if h.deliver(h.login(user, "eve", bus.WeakEvidence)); len(h.entries(user)) != 0 {
		t.Errorf("weak evidence: %+v", h.entries(user))
	}
	for range 3 {
		if got := h.deliver(h.login(user, "eve", bus.StrongEvidence)); got != want {
			t.Errorf("result %+v, want %+v", got, want)
		}
		if all := h.entries(user); len(all) != 1 || all[0].Known != "eve" || all[0].At != received.UnixMilli() || all[0].By != "m-1" {
			t.Fatalf("entries %+v", all)
		}
	}
	app, err := h.apps.App(t.Context(), appID)
	h.check(err)
	_, err = profile.IdentitiesOf(h.profiles).Unlink(t.Context(), app, user, "eve")
	h.check(err)
	h.deliver(h.login(user, "eve", bus.StrongEvidence))
	if all := h.entries(user); len(all) != 1 || all[0].State != links.Void {
		t.Errorf("entries after an unlink: %+v", all)
	}
	if rows := h.rows(); len(rows) != 1 {
		t.Errorf("rows %+v", rows)
	}
}

// unlinkable is an engine that fails to link.
type unlinkable struct{}

func (unlinkable) SignedIn(context.Context, config.App, []profile.SignIn) error { return errAway }

// A sign-in that fails is delivered again, and buried at the end. It is no event, so nobody looks for it in the log.
func TestSignInsThatFail(t *testing.T) {
	h := newHarness(t)
	h.link()
	h.Identities = unlinkable{}
	if got, err := h.Deliver(t.Context(), h.push(h.login(user, "eve", bus.StrongEvidence), 1)); got.Fate != apply.Retried || !errors.Is(err, errAway) {
		t.Errorf("result %+v, %v", got, err)
	}
	got, err := h.Deliver(t.Context(), h.last(h.login(user, "eve", bus.StrongEvidence)))
	h.check(err)
	if got.Fate != apply.Dead || !errors.Is(got.Reason, errAway) || len(h.bus.reasons) != 1 {
		t.Errorf("result %+v, buried for %q", got, h.bus.reasons)
	}
	broken := h.login(user, "eve", bus.StrongEvidence)
	broken.Body = []byte(`{"signIns":[]}`)
	h.bus.reasons = nil
	if got, err := h.Deliver(t.Context(), h.push(broken, 1)); err != nil || got.Fate != apply.Dead || len(h.bus.reasons) != 1 {
		t.Errorf("a message without sign-ins: %+v, %v, buried for %q", got, err, h.bus.reasons)
	}
}
