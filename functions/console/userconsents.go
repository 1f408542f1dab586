package console

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
)

func init() {
	notices["user-consents"] = "The purposes are set. What counts for withdrawn ones alone is out of every answer."
	notices["user-consents-forgotten"] = "The answers are taken back. The defaults of the purposes hold."
	pages = append(pages,
		page{pattern: "GET /console/users/{token}/consents", section: "users", template: "userconsents",
			load: ofUser(loadConsents)},
		page{pattern: "POST /console/users/{token}/consents", section: "users", template: "userconsents",
			load: ofUser(setConsents)},
		page{pattern: "POST /console/users/{token}/consents/forget", section: "users", template: "userconsents",
			load: ofUser(forgetConsents)},
	)
}

// consentsPage is what the page of what a user grants shows.
type consentsPage struct {
	Token, Path string
	State       api.Consents
	Asked       bool // the user has said something
	Problem     string
}

func loadConsents(v *visit, token string) (any, error) {
	v.title, v.command = "Purposes of "+shown(token), "affinity consent show "+userArg(token)
	state, err := v.engine.Profiles().Consents(v.Context(), token)
	if err != nil {
		return nil, fmt.Errorf("read consents: %w", err)
	}
	p := consentsPage{Token: token, Path: userPath(token, ""), State: state}
	for _, purpose := range state.Purposes {
		p.Asked = p.Asked || purpose.Asked
	}
	return p, nil
}

// setConsents grants and withdraws what the form says of purposes: "ads=grant". Others stay as they are.
func setConsents(v *visit, token string) (any, error) {
	grants := map[string]bool{}
	for field, said := range v.PostForm {
		name, ok := strings.CutPrefix(field, "purpose:")
		if ok && (said[0] == "grant" || said[0] == "withdraw") {
			grants[name] = said[0] == "grant"
		}
	}
	if len(grants) == 0 {
		shown, err := loadConsents(v, token)
		if p, ok := shown.(consentsPage); ok {
			p.Problem = "Grant or withdraw at least one purpose."
			v.status, shown = http.StatusUnprocessableEntity, p
		}
		return shown, err
	}
	if _, err := v.engine.Profiles().SetConsents(v.Context(), token, grants); err != nil {
		return nil, fmt.Errorf("set consents: %w", err)
	}
	return nil, done(userPath(token, "/consents"), "user-consents")
}

func forgetConsents(v *visit, token string) (any, error) {
	if _, err := v.engine.Profiles().ForgetConsents(v.Context(), token); err != nil {
		return nil, fmt.Errorf("forget consents: %w", err)
	}
	return nil, done(userPath(token, "/consents"), "user-consents-forgotten")
}
