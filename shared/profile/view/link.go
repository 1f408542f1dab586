package view

import (
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
)

// Link returns a link as the API answers it.
func Link(of profile.Link) api.Link {
	l := api.Link{
		UserToken: of.Token, AuthenticatedUserToken: of.Known, Since: api.AtMillis(of.Since), From: api.AtMillis(of.From),
		State: "open", Strength: "strong",
	}
	if of.Weak {
		l.Strength = "weak"
	}
	if of.Source == links.FromEvent {
		l.Event = of.By
	} else {
		l.Reason = of.By
	}
	if of.To != links.Open {
		to := api.AtMillis(of.To)
		l.To, l.State = &to, "closed"
	}
	switch {
	case of.State == links.Void:
		l.State = "unlinked"
	case of.Ended:
		l.State = "deleted"
	case of.Limited:
		l.State = "limit"
	}
	return l
}
