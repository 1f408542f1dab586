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
		State: "open", Strength: "strong", Key: of.Key,
	}
	if of.Weak {
		l.Strength = "weak"
	}
	switch of.Source {
	case links.FromEvent:
		l.By, l.Event = "event", of.By
	case links.FromCall:
		l.By, l.MessageID = "call", of.By
	case links.FromRequest:
		l.By, l.Reason = "request", of.By
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
