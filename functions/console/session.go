package console

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

const (
	// sessionLife is how long a session lasts.
	sessionLife = 8 * time.Hour
	// linkLife is how long a link to the console may be used.
	linkLife = 10 * time.Minute
	// cookieName has a prefix with which browsers accept the cookie only from this host, for all
	// paths, and over TLS or from the machine itself. plainName is for Safari on the machine itself,
	// which takes no such cookie there.
	cookieName = hostPrefix + plainName
	hostPrefix = "__Host-"
	plainName  = "affinity-console"
	// endedFresh is how long an instance believes that a session goes on. So a session may go on for as long
	// on other instances than the one that has logged it out.
	endedFresh = 5 * time.Second
	// endedSessions is how many sessions an instance remembers.
	endedSessions = 10_000
)

// Secret encrypts the cookies of sessions. Instances of a deployment share one.
type Secret [32]byte

// NewSecret returns a random secret. Sessions under it end with the process.
func NewSecret() Secret {
	var s Secret
	_, _ = rand.Read(s[:]) // it never fails
	return s
}

// UnmarshalText decodes a secret: 32 bytes in base64, as `openssl rand -base64 32` prints them.
func (s *Secret) UnmarshalText(text []byte) error {
	decoded, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil || len(decoded) != len(s) {
		return errors.New("the secret of the console's sessions must be 32 bytes in base64: openssl rand -base64 32")
	}
	copy(s[:], decoded)
	return nil
}

// session is what a cookie holds.
type session struct {
	App         string    `json:"app"`
	Key         string    `json:"key"` // the hash
	Permissions []string  `json:"permissions"`
	Ends        time.Time `json:"ends"`
	ID          []byte    `json:"id"` // random; the forms of the session's pages prove that they know it
}

var errNoSession = errors.New("the session has ended")

// Ended keeps which sessions have ended early, for all instances.
type Ended interface {
	// EndSession ends a session that would end at an instant.
	EndSession(ctx context.Context, app, id string, now, end time.Time) error
	SessionEnded(ctx context.Context, app, id string) (bool, error)
}

// endings remember what Ended says of sessions. They are safe for concurrent use.
type endings struct {
	store Ended
	now   func() time.Time
	mu    sync.Mutex
	known cache.Map[string, ending]
}

type ending struct {
	ended bool // for good
	asked time.Time
}

// end ends a session, on this instance at once.
func (e *endings) end(ctx context.Context, s session) error {
	e.note(s, true, e.now())
	return e.store.EndSession(ctx, s.App, s.name(), e.now(), s.Ends)
}

// ended reports whether a session has ended early.
func (e *endings) ended(ctx context.Context, s session) (bool, error) {
	asked := e.now()
	if known, ok := e.known.Get(s.name()); ok && (known.ended || asked.Sub(known.asked) < endedFresh) {
		return known.ended, nil
	}
	is, err := e.store.SessionEnded(ctx, s.App, s.name())
	if err != nil {
		return false, err
	}
	return e.note(s, is, asked), nil
}

// note remembers whether a session has ended, and returns whether it has.
func (e *endings) note(s session, ended bool, asked time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	known, _ := e.known.Get(s.name())
	known = ending{known.ended || ended, asked}
	e.known.Set(s.name(), known)
	return known.ended
}

// name is the ID as text.
func (s session) name() string { return hex.EncodeToString(s.ID) }

// sessions encrypts and decrypts cookies.
type sessions struct {
	secret Secret
	aead   cipher.AEAD
	now    func() time.Time
}

func newSessions(secret Secret, now func() time.Time) *sessions {
	block, err := aes.NewCipher(secret[:])
	if err != nil {
		panic(err) // a secret has the size of a key
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has the right block size
	}
	return &sessions{secret, aead, now}
}

// begin returns a new session, and the value of its cookie.
func (s *sessions) begin(of auth.Session) (session, string, error) {
	begun := session{of.App, of.Key, of.Permissions, s.now().Add(sessionLife), make([]byte, 16)}
	_, _ = rand.Read(begun.ID)
	text, err := json.Marshal(begun)
	if err != nil {
		return session{}, "", fmt.Errorf("begin a session: %w", err)
	}
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce)
	return begun, base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, text, []byte(cookieName))), nil
}

// cookieName returns the name of the cookie. Engines on one machine have a name each, because
// browsers send a host's cookies to all of its ports.
func (c *console) cookieName(r *http.Request) string {
	name := cookieName
	own := r.TLS == nil && httpapi.Loopback(r.Host)
	if agent := r.UserAgent(); c.Links != nil && own && strings.Contains(agent, "Safari/") &&
		!strings.Contains(agent, "Chrom") {
		name = plainName
	}
	if port := (&url.URL{Host: r.Host}).Port(); port != "" {
		name += "-" + port
	}
	return name
}

// setCookie sets the cookie of a session, or removes it with a maxAge below 0.
func (c *console) setCookie(w http.ResponseWriter, r *http.Request, value string, maxAge int) {
	name := c.cookieName(r)
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: maxAge, Secure: strings.HasPrefix(name, hostPrefix),
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// of returns the session of a request. The error is errNoSession if it has none.
func (s *sessions) of(r *http.Request, name string) (session, error) {
	c, err := r.Cookie(name)
	if err != nil {
		return session{}, errNoSession
	}
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil || len(sealed) < s.aead.NonceSize() {
		return session{}, errNoSession
	}
	text, err := s.aead.Open(nil, sealed[:s.aead.NonceSize()], sealed[s.aead.NonceSize():], []byte(cookieName))
	if err != nil {
		return session{}, errNoSession
	}
	var found session
	if json.Unmarshal(text, &found) != nil || !s.now().Before(found.Ends) {
		return session{}, errNoSession
	}
	return found, nil
}

// token returns what the forms of a session's pages send along with a change.
func (s *sessions) token(of session) string {
	mac := hmac.New(sha256.New, s.secret[:])
	mac.Write([]byte("form\x00"))
	mac.Write(of.ID)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// knows reports whether a form was part of a page of the session.
func (s *sessions) knows(of session, token string) bool {
	return hmac.Equal([]byte(token), []byte(s.token(of)))
}

// Links are links that open the console once each. They are for an engine on one machine, whose
// operator starts it with the key. It is safe for concurrent use.
type Links struct {
	now func() time.Time
	mu  sync.Mutex
	all map[string]link
}

type link struct {
	app, key string // the hash of the key
	ends     time.Time
}

// NewLinks returns Links without a link.
func NewLinks(now func() time.Time) *Links { return &Links{now: now, all: map[string]link{}} }

// New returns the path of a link that opens the console with a key of an app, within ten minutes.
func (l *Links) New(app, key string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	code := rand.Text()
	l.all[code] = link{app, auth.Hash(key), l.now().Add(linkLife)}
	return "/console/open?code=" + code
}

// use returns the app and the hash of the key of a link, and ends the link.
func (l *Links) use(code string) (app, key string, ok bool) {
	if l == nil {
		return "", "", false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ok := l.all[code]
	delete(l.all, code)
	return found.app, found.key, ok && l.now().Before(found.ends)
}
