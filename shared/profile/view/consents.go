package view

import (
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/profile"
)

// Consents returns what a user has said of the purposes of an app, as clients see it.
func Consents(of profile.Consented) (shown []api.UserPurpose) {
	for _, of := range of.Answers {
		p := api.UserPurpose{Name: of.Name, Granted: of.Granted, Asked: of.Asked}
		if of.Since.DeletedUntil > 0 {
			at := api.AtMillis(of.Since.DeletedUntil)
			p.Since = &at
		}
		shown = append(shown, p)
	}
	return shown
}
