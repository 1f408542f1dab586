// Package operator is the operator's way into an engine of `affinity up` or
// `affinity serve`. A deployed engine has none of it: there the operator has credentials of Google
// Cloud.
//
// Handler serves the routes below /local, Client calls them. Both halves are
// here because they are one build: only the command line tool is a client. The
// package keeps no data.
package operator

import (
	"crypto/rand"
	"errors"
	"regexp"

	"github.com/affinityengine/affinity/shared/app/limit"
)

// Variable is the environment variable that holds the operator's token, for
// `affinity up` and `affinity serve`, and for the commands that call it.
const Variable = "AFFINITY_OPERATOR"

var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_-]{16,200}$`)

// NewToken returns a random token.
func NewToken() string { return rand.Text() }

// CheckToken refuses a token that could be guessed or that no header can hold.
func CheckToken(token string) error {
	if !tokenForm.MatchString(token) {
		return errors.New(Variable + " must be 16 to 200 letters, digits, - and _")
	}
	return nil
}

// Place names the services behind an engine.
type Place struct {
	Project                string `json:"project"`
	Bigtable               string `json:"bigtable"` // host:port, as the next two
	PubSub                 string `json:"pubsub"`
	Tasks                  string `json:"tasks"`
	EventsTopic            string `json:"eventsTopic"`
	DeadLetterSubscription string `json:"deadLetterSubscription"`
	// Token is what the in-process services ask for, as `authorization: Bearer
	// TOKEN`. Official emulators ask for nothing.
	Token string `json:"token"`
	// Limits are those of an app that has no others.
	Limits limit.Numbers `json:"-"`
}
