package auth

import (
	"context"
	"net/http"
	"slices"
)

// Session lets a request use a key without its text. The console keeps one for a person who
// has shown the key. It ends with the key, and never permits more than the key did when the
// session began.
type Session struct {
	// App is the app of the key.
	App string
	// Key is the hash of the key.
	Key string
	// Permissions are those of the key when the session began.
	Permissions []string
}

type sessionKey struct{}

// WithSession returns a context for requests that are made in a session. They need no
// credentials, and any that they carry are ignored. Only code of the process can make one:
// nothing that a client sends becomes a session.
func WithSession(ctx context.Context, s Session) context.Context {
	return context.WithValue(ctx, sessionKey{}, s)
}

// in makes a request that of a session, if the context has one.
func (r Request) in(ctx context.Context) Request {
	if s, ok := ctx.Value(sessionKey{}).(Session); ok {
		// The session's page was reached by an operator's host, which serves every app.
		r.App, r.Key, r.session, r.Customer = s.App, "", &s, s.App
	}
	return r
}

// hash returns the hash of the request's key.
func (r Request) hash() string {
	if r.session != nil {
		return r.session.Key
	}
	return Hash(r.Key)
}

// permissions returns what a key permits to a request: in a session no more than it did at its
// beginning.
func (r Request) permissions(acl []string) []string {
	if r.session == nil {
		return acl
	}
	return slices.DeleteFunc(slices.Clone(acl),
		func(permission string) bool { return !slices.Contains(r.session.Permissions, permission) })
}

// Permissions lists what the grant permits: the ACLs of its key.
func (g Grant) Permissions() []string { return slices.Clone(g.acl) }

// Begin begins a session with the credentials of a request. Its errors are those of Check, and
// ErrGuesses. A secured key is refused: it is for a page of one user.
func (a *Authenticator) Begin(r *http.Request) (Session, error) {
	request := NewRequest(r)
	if _, secured := parseSecured(request.Key); secured {
		return Session{}, ErrSecured
	}
	g, err := a.guarded(r.Context(), request, nil)
	if err != nil {
		return Session{}, err
	}
	return Session{App: g.App, Key: request.hash(), Permissions: g.Permissions()}, nil
}

// Resume returns what a session permits now. The error is ErrCredentials once its key has ended.
func (a *Authenticator) Resume(ctx context.Context, s Session) (Grant, error) {
	return a.Check(ctx, Request{}.in(WithSession(ctx, s)))
}
