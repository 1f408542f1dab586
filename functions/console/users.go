package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

func init() {
	pages = append(pages, page{pattern: "GET /console/users", section: "users", template: "users", load: loadUsers})
}

const (
	usersPath = "/console/users"
	// usersListed is how many users a page of the list has, and recentListed how many of those
	// who have just sent events.
	usersListed  = 50
	recentListed = 20
)

// usersPage is what the list of users shows.
type usersPage struct {
	Query   string // how the tokens begin
	Problem string // what is wrong with it
	Now     time.Time
	// Listed is whether the session may list users. Searched is whether it may read one.
	Listed, Searched bool
	Recent           []userLine
	// Quiet is whether the engine knows which users are recent, and there are none.
	Quiet  bool
	Users  []userLine
	Faulty []userLine
	// Later is whether the list is not the first page, and Next the address of the next one.
	Later       bool
	First, Next string
	// Exact is the page of the user with the token that was searched for, known or not.
	Exact string
}

// userLine is a user of the list.
type userLine struct {
	Token, Path string
	LastEventAt time.Time
	Total       int // values
	Events      int // in the sample of recent events
	Exact       bool
	Score       float64 // of the filter that a list is ordered by
}

// errToken says that a page about a user cannot be.
var errToken = httpapi.Errorf(http.StatusUnprocessableEntity,
	"No user has this token: tokens have 1 to 129 letters, digits and = + / - _")

// ofUser loads a page about one user, whom the address names.
func ofUser(load func(v *visit, token string) (any, error)) func(*visit) (any, error) {
	return func(v *visit) (any, error) {
		token := v.PathValue("token")
		if !event.ValidUserToken(token) {
			return nil, errToken
		}
		return load(v, token)
	}
}

// userPath is the address of a page about a user.
func userPath(token, rest string) string {
	return usersPath + "/" + url.PathEscape(token) + rest
}

func loadUsers(v *visit) (any, error) {
	v.title, v.command = "Users", "affinity user list"
	query := v.URL.Query()
	shown := &usersPage{
		Query: strings.TrimSpace(query.Get("q")), Now: v.now(),
		Listed: v.may(auth.Admin), Searched: v.may(auth.Recommendation, auth.ProfilesRead),
	}
	if shown.Query != "" && !event.ValidUserToken(shown.Query) {
		v.command, v.status = "", http.StatusUnprocessableEntity
		shown.Query, shown.Problem = visible(shown.Query, maxShown),
			"No token is like this: tokens have 1 to 129 letters, digits and = + / - _"
		return shown, nil
	}
	if shown.Query != "" {
		v.command += " --prefix=" + shellArg(shown.Query)
		shown.Exact = userPath(shown.Query, "")
		if !shown.Listed {
			return nil, redirect{shown.Exact}
		}
	}
	if !shown.Listed {
		v.command = ""
		return shown, nil
	}
	if shown.Query == "" && query.Get("by") != "token" {
		if err := shown.readRecent(v); err != nil || len(shown.Recent) > 0 {
			return shown, err
		}
	}
	return shown, shown.readList(v, query.Get("after"))
}

// readRecent reads who has just sent events.
func (p *usersPage) readRecent(v *visit) error {
	answer, err := v.engine.Profiles().RecentUsers(v.Context(), recentListed)
	if err != nil {
		return fmt.Errorf("list recent users: %w", err)
	}
	for _, u := range answer.Users {
		p.Recent = append(p.Recent, userLine{Token: u.UserToken, Path: userPath(u.UserToken, ""),
			LastEventAt: u.LastEventAt.Time, Events: u.Events})
	}
	p.Quiet = len(p.Recent) == 0
	if !p.Quiet {
		v.command = "affinity user recent"
	}
	return nil
}

// readList reads a page of the list by token. Its error sends the browser to the one user that
// a search finds.
func (p *usersPage) readList(v *visit, after string) error {
	answer, err := v.engine.Profiles().Users(v.Context(),
		api.UsersQuery{Prefix: p.Query, Limit: usersListed, Cursor: after})
	if err != nil {
		return fmt.Errorf("list users: %w", err)
	}
	if len(answer.Users) == 1 && answer.Cursor == "" && after == "" && answer.Users[0].UserToken == p.Query {
		return redirect{p.Exact}
	}
	for _, u := range answer.Users {
		p.Users = append(p.Users, userLine{
			Token: u.UserToken, Path: userPath(u.UserToken, ""), LastEventAt: u.LastEventAt.Time, Total: u.Total,
			Exact: u.UserToken == p.Query,
		})
	}
	for _, token := range answer.Faulty {
		p.Faulty = append(p.Faulty, userLine{Token: token, Path: userPath(token, "")})
	}
	p.Later = after != ""
	next := url.Values{"by": {"token"}}
	if p.Query != "" {
		next = url.Values{"q": {p.Query}}
	}
	p.First = usersPath + "?" + next.Encode()
	if answer.Cursor != "" {
		next.Set("after", answer.Cursor)
		p.Next = usersPath + "?" + next.Encode()
	}
	return nil
}
