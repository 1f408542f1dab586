package limit

import "context"

// request is what a limit counts: one request of a client.
type request struct {
	limiter *Limiter
	kind    Kind
	report  func(State)
	counted bool
	// app and state are those of a request that was counted and let through.
	app   string
	state State
}

type requestKey struct{}

// Begin returns the context of a request that counts as one of a kind once its app
// is known. report learns what is then left of the limit.
func (l *Limiter) Begin(ctx context.Context, k Kind, report func(State)) context.Context {
	return context.WithValue(ctx, requestKey{}, &request{limiter: l, kind: k, report: report})
}

// Authenticated counts the request that a context belongs to, the first time that
// it is called for it. numbers returns the app's own limits. The error is a
// *Refused, or that of numbers. Without a request it counts nothing.
func Authenticated(ctx context.Context, app string, numbers func() (Numbers, error)) error {
	r, ok := ctx.Value(requestKey{}).(*request)
	if !ok || r.counted || r.kind == Nothing {
		return nil
	}
	r.counted = true
	own, err := numbers()
	if err != nil {
		return err
	}
	s, err := r.limiter.Take(app, own, r.kind)
	if err == nil {
		r.app, r.state = app, s
		r.report(s)
	}
	return err
}

// GiveBack takes back what Authenticated has counted per hour for the request that a
// context belongs to: the request was refused, and started or set nothing.
func GiveBack(ctx context.Context) {
	r, ok := ctx.Value(requestKey{}).(*request)
	if !ok || r.app == "" {
		return
	}
	if s, ok := r.limiter.giveBack(r.app, r.kind, r.state); ok {
		r.report(s)
	}
	r.app = ""
}
