package ingest

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/track"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

var (
	errSignInToken error = fault.New(fault.Invalid,
		"The userId, anonymousId or previousId of the call is no user token, which has 1 to 129 of a-z, A-Z, 0-9 and "+
			"_=/+-: send such tokens, or use a key that hashes ids (affinity app key add --hash-tokens)")
	errSignInAge error = fault.New(fault.Invalid, "The call is more than %d days old, and links no tokens",
		int(api.MaxEventAge.Hours()/24))
)

// signIn is what a call says of who has signed in.
type signIn struct {
	bus.SignIn
	// repeated says that each call of the user says it again, as track calls do.
	repeated bool
}

// addSignIn adds what a call says of who has signed in. It returns false if the call says nothing of it.
func (o *outcome) addSignIn(call track.Call) bool {
	anonymous := call.SignIn()
	if anonymous == "" {
		return false
	}
	s := signIn{bus.SignIn{User: o.token(anonymous), Known: o.token(call.UserToken), MessageID: call.MessageID},
		call.Type == track.Track}
	var err error
	if s.Time, err = o.timeOf(call); err == nil && !(event.ValidUserToken(s.User) && event.ValidUserToken(s.Known)) {
		err = errSignInToken
	}
	switch {
	case err == nil:
		o.signIns = append(o.signIns, s)
	case !s.repeated: // a track call is refused for what its event lacks
		o.refuse(err, encoded(api.Event{EventName: call.Type, UserToken: s.User, AuthenticatedUserToken: s.Known}))
	}
	return true
}

// timeOf returns when the user acted, by the rules for the times of events.
func (o *outcome) timeOf(call track.Call) (int64, error) {
	call, _, err := call.Received(o.rules.Now)
	now := o.rules.Now.UnixMilli()
	if err != nil || call.Time == "" {
		return now, err
	}
	at, err := event.ParseTime(call.Time)
	switch {
	case err != nil:
		return 0, err
	case at > now+o.rules.Ahead.Milliseconds():
		return now, nil
	case at < now-o.rules.MaxAge.Milliseconds():
		return 0, errSignInAge
	}
	return at, nil
}

// permittedSignIns returns an error if the key is not for all sign-ins of a request.
func (h handler) permittedSignIns(ctx context.Context, grant auth.Grant, all []signIn) error {
	for _, s := range all {
		if err := h.permittedUser(ctx, grant, s.User, s.Known); err != nil {
			return err
		}
	}
	return nil
}

// publishSignIns publishes the sign-ins of a request. Each counts as an event in the app's limit.
func (h handler) publishSignIns(ctx context.Context, header http.Header, in request, all []signIn) error {
	evidence := bus.StrongEvidence
	for _, s := range all {
		if !mayName(in.grant, s.Known) {
			evidence = bus.WeakEvidence
		}
	}
	signIns := h.recent.others(in.app(), evidence, all, in.received)
	if len(signIns) == 0 {
		return nil
	}
	err := h.publishEvidence(ctx, header, in, evidence, signIns)
	if err != nil {
		h.recent.forget(in.app(), signIns)
	}
	return err
}

func (h handler) publishEvidence(ctx context.Context, header http.Header, in request, evidence bus.Evidence,
	signIns []bus.SignIn) error {
	left, slow, err := h.Limits.Events(in.app(), in.limits, len(signIns), in.received)
	if err != nil {
		return err
	}
	httpapi.WriteLimit(header, left)
	at, err := h.signInsByRegion(ctx, in, signIns)
	for region, there := range at {
		if err != nil {
			break
		}
		var m bus.Message
		if m, err = bus.NewSignIns(in.app(), in.received, evidence, in.grant.KeyID(), there); err != nil {
			return err
		}
		if m.Region = region; slow {
			m.Lane = bus.SlowLane
		}
		err = h.Bus.Publish(ctx, m)
	}
	if err != nil {
		h.Log.LogAttrs(ctx, slog.LevelError, "sign-ins are not published", slog.String("app", in.app()),
			slog.Any("error", err))
		return errNotStored
	}
	return nil
}

const (
	// maxRecentSignIns bounds how many tokens recentSignIns holds.
	maxRecentSignIns = 10_000
	// signInPause is how long the repeated sign-ins of a token are left out.
	signInPause = 10 * time.Minute
)

// recentSignIns remembers who has signed in under which token by the messages that the process has lately published.
// SDKs send both ids with each call of a user who has signed in, and a message costs as much as an event.
type recentSignIns struct {
	known cache.Map[recentToken, recentSignIn]
}

type recentToken struct{ app, token string }

type recentSignIn struct {
	known    string
	evidence bus.Evidence
	at       time.Time
}

func newRecentSignIns() recentSignIns {
	return recentSignIns{cache.New[recentToken, recentSignIn](maxRecentSignIns)}
}

// others returns the sign-ins but for repeated ones that the process has lately published, or is about to.
func (r recentSignIns) others(app string, evidence bus.Evidence, all []signIn, now time.Time) []bus.SignIn {
	var others []bus.SignIn
	for _, s := range all {
		token := recentToken{app, s.User}
		last, ok := r.known.Get(token)
		if ok && s.repeated && last.known == s.Known && last.evidence == evidence && now.Sub(last.at) < signInPause {
			continue
		}
		r.known.Set(token, recentSignIn{s.Known, evidence, now})
		others = append(others, s.SignIn)
	}
	return others
}

// forget has sign-ins that could not be published be published again.
func (r recentSignIns) forget(app string, all []bus.SignIn) {
	for _, s := range all {
		r.known.Delete(recentToken{app, s.User})
	}
}
