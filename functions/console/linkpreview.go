package console

import (
	"fmt"
	"net/url"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

func init() {
	pages = append(pages, page{pattern: "GET /console/linkpreviews/{id}", section: "jobs", template: "linkpreview",
		fragment: "report", poll: true, load: loadLinkPreview})
}

// linksPath is the page of a preview of links.
func linksPath(id string) string { return "/console/linkpreviews/" + url.PathEscape(id) }

func linksJob(j api.IdentityPreview) jobLine {
	line := newJob(kindLinks, "Preview of links between tokens", j.ID, j.State, j.Users, j.PlannedUsers, j.StartedAt,
		j.FinishedAt).waits(j.Place).faults(j.Faulty, j.Error)
	line.Path = linksPath(j.ID)
	return line
}

// linkPreview is what the page of a preview of links shows.
type linkPreview struct {
	Now     time.Time
	Job     jobLine
	Preview api.IdentityPreview
	Links   *api.LinkPreview // nil until the job is done
	Refused []refusedCount
}

// refusedCount counts the events that would make no link.
type refusedCount struct {
	api.RefusedEvidence
	Words string
}

func loadLinkPreview(v *visit) (any, error) {
	v.title, v.command = "Preview of links", "affinity identity preview"
	preview, err := v.engine.Jobs().IdentityPreview(v.Context(), v.PathValue("id"))
	if err != nil {
		return nil, fmt.Errorf("read a preview of links: %w", err)
	}
	p := &linkPreview{Now: v.now(), Job: linksJob(preview), Preview: preview, Links: preview.Links}
	if p.Links != nil {
		for _, r := range p.Links.Refused {
			p.Refused = append(p.Refused, refusedCount{r, wordsOf(r.Reason)})
		}
	}
	return p, nil
}

// Nothing reports whether no event would link anything.
func (p *linkPreview) Nothing() bool { return p.Links != nil && p.Links.Evidence == 0 }

// Several are the users with more than one token.
func (p *linkPreview) Several() []api.LargestUser {
	var list []api.LargestUser
	for _, u := range p.Links.Largest {
		if len(u.UserTokens) > 1 {
			list = append(list, u)
		}
	}
	return list
}

// Share returns a number of users as a part, in percent, of those whose orders were compared.
func (p *linkPreview) Share(users int) float64 {
	return 100 * float64(users) / float64(max(1, p.Links.Orders.Users))
}
