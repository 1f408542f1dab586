package console

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

func init() {
	notices["tokens-unlinked"] = "The link is undone. Both profiles are what they would be without it."
	pages = append(pages,
		page{pattern: "GET /console/users/{token}/unlink", section: "users", template: "userunlink",
			load: ofUser(loadUnlink)},
		page{pattern: "POST /console/users/{token}/unlink", section: "users", template: "userunlink",
			load: ofUser(unlink)},
	)
}

// userLinks are the links of a token.
type userLinks struct {
	// Known says that users sign in with the token; else it is an anonymous one.
	Known bool
	Rows  []linkRow
}

// linkRow is a link as a page shows it.
type linkRow struct {
	api.Link
	Now             time.Time
	Other           string // the token at the other end
	OtherPath       string
	State, Evidence string // in words
	// Unlink is the page that asks whether to undo the link; empty: there is nothing to undo.
	Unlink string
}

// linkStates say what has become of a link.
var linkStates = map[string]string{
	"open":     "open",
	"closed":   "ended: another user signed in",
	"limit":    "ended: the user has newer tokens",
	"unlinked": "undone",
	"deleted":  "ended by a deletion or an opt-out",
}

var linkEvidence = map[string]string{
	"event": "an event with both tokens", "call": "a call of an SDK", "request": "a request",
}

// linksOf returns the links of a token, nil if the session may not see them or there are none.
func linksOf(v *visit, token string) (*userLinks, error) {
	if !v.may(auth.Admin) {
		return nil, nil
	}
	answer, err := v.engine.Profiles().Identity(v.Context(), token)
	if err != nil {
		return nil, fmt.Errorf("read the links of a token: %w", err)
	}
	if len(answer.Links) == 0 {
		return nil, nil
	}
	links := &userLinks{Known: answer.Role == "known"}
	for _, l := range answer.Links {
		row := linkRow{Link: l, Now: v.now(), Other: l.AuthenticatedUserToken, State: linkStates[l.State],
			Evidence: linkEvidence[l.By]}
		if links.Known {
			row.Other = l.UserToken
		}
		row.OtherPath = userPath(row.Other, "")
		if undoable(l) {
			row.Unlink = userPath(l.UserToken, "/unlink?"+url.Values{"from": {l.AuthenticatedUserToken}}.Encode())
		}
		links.Rows = append(links.Rows, row)
	}
	return links, nil
}

// undoable reports whether events count by a link.
func undoable(l api.Link) bool { return l.State == "open" || l.State == "closed" || l.State == "limit" }

// unlinking is what the page that confirms an unlink shows.
type unlinking struct {
	Token, Path      string
	Known, KnownPath string
	// Links are those that are undone.
	Links []api.Link
}

func loadUnlink(v *visit, token string) (any, error) {
	known := v.URL.Query().Get("from")
	if !v.may(auth.Admin) {
		return nil, httpapi.Errorf(http.StatusForbidden, "To undo a link needs a key with the permission admin")
	}
	if !event.ValidUserToken(known) {
		return nil, errToken
	}
	v.title, v.command = "Unlink "+shown(token), "affinity identity unlink "+userArg(token)+" "+shellArg(known)
	answer, err := v.engine.Profiles().Identity(v.Context(), token)
	if err != nil {
		return nil, fmt.Errorf("read the links of a token: %w", err)
	}
	p := unlinking{Token: token, Path: userPath(token, ""), Known: known, KnownPath: userPath(known, "")}
	for _, l := range answer.Links {
		if l.UserToken == token && l.AuthenticatedUserToken == known && undoable(l) {
			p.Links = append(p.Links, l)
		}
	}
	if len(p.Links) == 0 {
		return nil, httpapi.Errorf(http.StatusNotFound, "The tokens are not linked")
	}
	return p, nil
}

func unlink(v *visit, token string) (any, error) {
	known := v.PostForm.Get("from")
	if !event.ValidUserToken(known) {
		return nil, errToken
	}
	if _, err := v.engine.Profiles().Unlink(v.Context(), token, known); err != nil {
		return nil, fmt.Errorf("undo a link: %w", err)
	}
	return nil, done(userPath(known, ""), "tokens-unlinked")
}
