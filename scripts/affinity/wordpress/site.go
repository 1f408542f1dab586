package wordpress

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/api/client"
)

// maxBody is the largest answer that is read, in bytes after unpacking. A page of
// 100 long posts has about 5 MB.
var maxBody = 64 << 20 // less in tests

const (
	// requestTimeout is longer than a slow site takes to render 100 posts.
	requestTimeout = 2 * time.Minute
	maxRedirects   = 5
	// maxMessage is how much of an error text is kept, in characters.
	maxMessage = 300
	userAgent  = "affinity-wordpress-sync"
)

// Config names a site.
type Config struct {
	// URL is the address of the site, not of its API.
	URL string
	// User and Password are optional: a WordPress user and one of their
	// application passwords, for a site whose API wants a login.
	User, Password string
	// Retry says how long a request is repeated while the site is busy or away.
	// Zero waits mean half a second, doubling up to half a minute, for two
	// minutes.
	Retry client.Retry
}

// Site is the REST API of a WordPress site.
type Site struct {
	base     *url.URL // of the site
	root     *url.URL // of the API; its path, or rest_route in its query, ends in a slash
	cfg      Config
	http     *http.Client
	answered bool // the site has answered before: a failed connection is an outage
}

// Open finds the API of a site: at the address in the Link header of the home
// page, or else below /wp-json/.
func Open(ctx context.Context, cfg Config) (*Site, error) {
	base, err := ParseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	cfg.Retry.First = cmp.Or(cfg.Retry.First, 500*time.Millisecond)
	cfg.Retry.Max = cmp.Or(cfg.Retry.Max, 30*time.Second)
	cfg.Retry.Total = cmp.Or(cfg.Retry.Total, 2*time.Minute)
	s := &Site{base: base, cfg: cfg}
	s.http = &http.Client{Timeout: requestTimeout, CheckRedirect: s.redirect}
	err = s.patiently(ctx, func() error {
		response, err := s.do(ctx, http.MethodHead, base)
		if err != nil {
			return err
		}
		_ = response.Body.Close() // it is empty
		if refused := (&AnswerError{Status: response.StatusCode}); refused.temporary() {
			refused.RetryAfter = retryAfter(response.Header)
			return refused
		}
		s.root, err = s.discover(response)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find the REST API of %s: %w", base, err)
	}
	return s, nil
}

// ParseURL reads the address of a site.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the address of a site is http:// or https://, a host and perhaps a path, got %q", text)
	}
	u.Path = strings.TrimRight(u.Path, "/") + "/"
	return u, nil
}

// apiLink finds the API in a Link header: the reference calls it "discovery".
var apiLink = regexp.MustCompile(`<([^>]*)>[^<]*;\s*rel="?https://api\.w\.org/"?`)

// discover is the address of the API. The host stays the one that answered: the
// password goes to no other.
func (s *Site) discover(home *http.Response) (*url.URL, error) {
	reached := home.Request.URL
	found := apiLink.FindStringSubmatch(strings.Join(home.Header.Values("Link"), ", "))
	if found == nil {
		return reached.Parse(s.base.Path + "wp-json/")
	}
	root, err := reached.Parse(found[1])
	if err != nil {
		return nil, fmt.Errorf("the site names an API that is not an address: %q", found[1])
	}
	if root.Hostname() != reached.Hostname() {
		return nil, fmt.Errorf("its API is at another host, %s: give the site at this host", root.Host)
	}
	root.Scheme, root.Host = reached.Scheme, reached.Host
	return root, nil
}

// errRedirect is the reason for not following a redirect.
var errRedirect = errors.New("a redirect is not followed")

// redirect follows redirects within the host, and from http to https.
func (s *Site) redirect(next *http.Request, before []*http.Request) error {
	from, to := before[0].URL, next.URL
	upgrade := from.Scheme == "http" && to.Scheme == "https" && from.Port() == "" && to.Port() == "" &&
		from.Hostname() == to.Hostname()
	switch {
	case len(before) > maxRedirects:
		return fmt.Errorf("%w: more than %d in a row", errRedirect, maxRedirects)
	case !upgrade && (from.Scheme != to.Scheme || from.Host != to.Host):
		return fmt.Errorf("%w: %s leads to %s://%s; give the site by this address if it is yours", errRedirect,
			from.Host, to.Scheme, to.Host)
	}
	return nil
}

// address is the URL of a route such as wp/v2/posts. Sites without pretty
// permalinks have the route in the query.
func (s *Site) address(route string, params url.Values) *url.URL {
	u := *s.root
	query := u.Query()
	if at := query.Get("rest_route"); at != "" {
		query.Set("rest_route", strings.TrimRight(at, "/")+"/"+route)
	} else {
		u.Path = strings.TrimRight(u.Path, "/") + "/" + route
	}
	for name, values := range params {
		query[name] = values
	}
	u.RawQuery = query.Encode()
	return &u
}

// get reads a route into v, and repeats the request while the site is busy or
// away, or its answer is cut off.
func (s *Site) get(ctx context.Context, route string, params url.Values, v any) (http.Header, error) {
	var header http.Header
	u := s.address(route, params)
	err := s.patiently(ctx, func() (err error) {
		header, err = s.getOnce(ctx, u, v)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", u, err)
	}
	return header, nil
}

func (s *Site) getOnce(ctx context.Context, u *url.URL, v any) (http.Header, error) {
	response, err := s.do(ctx, http.MethodGet, u)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(maxBody)+1))
	if err != nil {
		return nil, &cutError{err}
	}
	if len(body) > maxBody {
		return nil, fmt.Errorf("the answer has more than %d MB: ask for smaller pages with --per-page", maxBody>>20)
	}
	body = bytes.TrimPrefix(body, []byte("\ufeff")) // some plugins print one before everything
	if response.StatusCode != http.StatusOK {
		return nil, answerError(response, body)
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") {
		return nil, errors.New("the answer is a page of HTML and not JSON: the site may be under maintenance, or " +
			"hide its REST API")
	}
	err = json.Unmarshal(body, v, lenient)
	if err != nil && !jsontext.Value(body).IsValid(lenient) {
		return nil, &cutError{errors.New("it is not valid JSON")}
	}
	if err != nil {
		return nil, fmt.Errorf("the answer is not what WordPress sends: %w", err)
	}
	return response.Header, nil
}

// lenient takes what PHP writes and another parser would refuse.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

func (s *Site) do(ctx context.Context, method string, u *url.URL) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set("Cache-Control", "no-cache") // a page cache would show posts that have left
	if s.cfg.User != "" {
		request.SetBasicAuth(s.cfg.User, s.cfg.Password)
	}
	response, err := s.http.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // without the address, which the message has already
		}
		if errors.Is(err, errRedirect) {
			return nil, err
		}
		return nil, &silentError{err: err, reached: s.answered}
	}
	s.answered = true
	return response, nil
}

// patiently repeats a request while its error is temporary.
func (s *Site) patiently(ctx context.Context, request func() error) error {
	begun := time.Now()
	for wait := s.cfg.Retry.First; ; wait = min(2*wait, s.cfg.Retry.Max) {
		err := request()
		var failed interface{ temporary() bool }
		if err == nil || !errors.As(err, &failed) || !failed.temporary() {
			return err
		}
		pause := wait - rand.N(wait/2+1)
		var refused *AnswerError
		if errors.As(err, &refused) && refused.RetryAfter > 0 {
			pause = refused.RetryAfter
		}
		if time.Since(begun)+pause > s.cfg.Retry.Total {
			return fmt.Errorf("gave up after trying again for %s: %w", s.cfg.Retry.Total, err)
		}
		if s.cfg.Retry.Notify != nil {
			s.cfg.Retry.Notify(err, pause)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// silentError is the error of a request without an answer.
type silentError struct {
	err     error
	reached bool // the site has answered before
}

func (e *silentError) Error() string   { return fmt.Sprintf("the site does not answer (%v)", e.err) }
func (e *silentError) Unwrap() error   { return e.err }
func (e *silentError) temporary() bool { return e.reached }

// cutError is the error of an answer that did not arrive whole.
type cutError struct{ err error }

func (e *cutError) Error() string   { return fmt.Sprintf("the answer did not arrive whole (%v)", e.err) }
func (e *cutError) Unwrap() error   { return e.err }
func (e *cutError) temporary() bool { return true }

// AnswerError is an answer of WordPress, or of a server before it, that is not a
// success.
type AnswerError struct {
	Status        int
	Code, Message string        // of WordPress, such as rest_forbidden; empty if something else answered
	RetryAfter    time.Duration // 0: the site does not say
}

// Error gives the words of WordPress, and what to do about a missing login.
func (e *AnswerError) Error() string {
	text := fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
	if e.Code != "" {
		text = fmt.Sprintf("%d %s (%s)", e.Status, e.Message, e.Code)
	}
	if e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden {
		text += "; an API that wants a login needs a user and an application password"
	}
	return text
}

func (e *AnswerError) temporary() bool {
	return e.Status == http.StatusRequestTimeout || e.Status == http.StatusTooManyRequests || e.Status >= 500
}

func answerError(response *http.Response, body []byte) error {
	var said struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(body, &said, lenient) // what is not JSON has no code
	return &AnswerError{
		Status: response.StatusCode, Code: fmt.Sprintf("%.*s", maxMessage, said.Code),
		Message:    fmt.Sprintf("%.*s", maxMessage, plain(said.Message)),
		RetryAfter: retryAfter(response.Header),
	}
}

// retryAfter reads seconds or a date. Without either, or with a time that has
// passed, it is not positive.
func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return time.Until(at)
}
