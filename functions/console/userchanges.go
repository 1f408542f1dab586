package console

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

func init() {
	notices["user-deleted"] = "The user is deleted. No event that was received before counts any more."
	notices["user-out"] = "The opt-out is set. The user's past is deleted, and events of these types are dropped " +
		"from now on."
	notices["user-in"] = "The opt-out has ended. What the user does from now on counts."
	pages = append(pages,
		page{pattern: "GET /console/users/{token}/delete", section: "users", template: "userdelete",
			load: ofUser(loadDelete)},
		page{pattern: "POST /console/users/{token}/delete", section: "users", template: "userdelete",
			load: ofUser(deleteUser)},
		page{pattern: "GET /console/users/{token}/optout", section: "users", template: "useroptout",
			load: ofUser(loadOptOut)},
		page{pattern: "POST /console/users/{token}/optout", section: "users", template: "useroptout", load: ofUser(optOut)},
		page{pattern: "POST /console/users/{token}/optin", section: "users", template: "useroptout", load: ofUser(optIn)},
	)
}

// deletion is what the page that confirms a deletion shows.
type deletion struct {
	Token, Path string
	MayOptOut   bool
}

func loadDelete(v *visit, token string) (any, error) {
	v.title, v.command = "Delete "+shown(token), "affinity user delete "+userArg(token)
	if !v.may(auth.Recommendation, auth.DeleteObject) {
		return nil, httpapi.Errorf(http.StatusForbidden,
			"To delete a user needs a key with the permission recommendation or deleteObject")
	}
	return deletion{token, userPath(token, ""), v.may(auth.DeleteObject)}, nil
}

func deleteUser(v *visit, token string) (any, error) {
	if _, err := v.engine.Profiles().Delete(v.Context(), token); err != nil {
		return nil, fmt.Errorf("delete a user: %w", err)
	}
	return nil, done(usersPath, "user-deleted")
}

// optOutPage is what the page of a user's opt-out shows.
type optOutPage struct {
	Token, Path string
	Types       []optOutType
	State       api.OptOut
	All         bool // the user is out of all types
	Problem     string
}

type optOutType struct {
	Type event.Type
	Out  bool
}

func loadOptOut(v *visit, token string) (any, error) {
	v.title, v.command = "Opt-out of "+shown(token), "affinity optout show "+userArg(token)
	state, err := v.engine.Profiles().OptedOut(v.Context(), token)
	if err != nil {
		return nil, fmt.Errorf("read an opt-out: %w", err)
	}
	p := optOutPage{Token: token, Path: userPath(token, ""), State: state}
	for _, t := range event.AllTypes.List() {
		p.Types = append(p.Types, optOutType{t, slices.Contains(state.EventTypes, t)})
	}
	p.All = len(state.EventTypes) == len(p.Types)
	return p, nil
}

// optOut sets the types that the form has. Without one it would be all: a form must say so.
func optOut(v *visit, token string) (any, error) {
	request := api.OptOutRequest{}
	for _, name := range v.PostForm["type"] {
		request.EventTypes = append(request.EventTypes, event.Type(name))
	}
	if len(request.EventTypes) == 0 {
		shown, err := loadOptOut(v, token)
		if p, ok := shown.(optOutPage); ok {
			p.Problem = "Choose at least one type of events."
			v.status, shown = http.StatusUnprocessableEntity, p
		}
		return shown, err
	}
	if _, err := v.engine.Profiles().OptOut(v.Context(), token, request); err != nil {
		return nil, fmt.Errorf("opt a user out of %s: %w", strings.Join(v.PostForm["type"], ", "), err)
	}
	return nil, done(userPath(token, "/optout"), "user-out")
}

func optIn(v *visit, token string) (any, error) {
	if _, err := v.engine.Profiles().OptIn(v.Context(), token); err != nil {
		return nil, fmt.Errorf("opt a user in: %w", err)
	}
	return nil, done(userPath(token, "/optout"), "user-in")
}
