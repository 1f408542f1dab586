package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/profile/links"
)

// Links returns what a dry run of links has found.
func Links(d *links.DryRun) api.LinkCounts {
	c := api.LinkCounts{Evidence: d.Evidence, PerUser: []api.TokensPerUser{}, Largest: []api.LargestUser{},
		Refused: []api.RefusedEvidence{}}
	users := map[string][]string{}
	for token, entries := range d.Linked() {
		c.Tokens++
		for _, e := range entries {
			switch {
			case e.Limited:
				c.Limited++
			case e.To != links.Open:
				c.Closed++
			}
			if of := users[e.Known]; len(of) == 0 || of[len(of)-1] != token {
				users[e.Known] = append(of, token)
			}
		}
	}
	c.Users = int64(len(users))
	perUser := map[int64]int64{}
	for _, tokens := range users {
		perUser[int64(len(tokens))]++
	}
	for _, n := range slices.Sorted(maps.Keys(perUser)) {
		c.PerUser = append(c.PerUser, api.TokensPerUser{Tokens: n, Users: perUser[n]})
	}
	largest := slices.SortedFunc(maps.Keys(users), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(users[b]), len(users[a])), strings.Compare(a, b))
	})
	for _, known := range largest[:min(len(largest), api.MaxLargestUsers)] {
		c.Largest = append(c.Largest, api.LargestUser{AuthenticatedUserToken: known, UserTokens: users[known]})
	}
	for reason, r := range d.Refused {
		c.Refused = append(c.Refused, api.RefusedEvidence{Reason: string(reason), Count: r.Count, UserToken: r.User,
			AuthenticatedUserToken: r.Known})
	}
	slices.SortFunc(c.Refused, byCount)
	return c
}

func byCount(a, b api.RefusedEvidence) int {
	return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Reason, b.Reason))
}

// Sum returns what two dry runs over different users have found.
func Sum(a, b api.LinkCounts) api.LinkCounts {
	c := api.LinkCounts{Evidence: a.Evidence + b.Evidence, Tokens: a.Tokens + b.Tokens, Users: a.Users + b.Users,
		Limited: a.Limited + b.Limited, Closed: a.Closed + b.Closed, PerUser: []api.TokensPerUser{},
		Refused: []api.RefusedEvidence{}}
	perUser := map[int64]int64{}
	for _, n := range slices.Concat(a.PerUser, b.PerUser) {
		perUser[n.Tokens] += n.Users
	}
	for _, n := range slices.Sorted(maps.Keys(perUser)) {
		c.PerUser = append(c.PerUser, api.TokensPerUser{Tokens: n, Users: perUser[n]})
	}
	largest := slices.SortedFunc(slices.Values(slices.Concat(a.Largest, b.Largest)), func(a, b api.LargestUser) int {
		return cmp.Or(cmp.Compare(len(b.UserTokens), len(a.UserTokens)),
			strings.Compare(a.AuthenticatedUserToken, b.AuthenticatedUserToken))
	})
	c.Largest = append([]api.LargestUser{}, largest[:min(len(largest), api.MaxLargestUsers)]...)
	for _, r := range slices.Concat(a.Refused, b.Refused) {
		i := slices.IndexFunc(c.Refused, func(of api.RefusedEvidence) bool { return of.Reason == r.Reason })
		if i < 0 {
			c.Refused = append(c.Refused, r)
			continue
		}
		c.Refused[i].Count += r.Count
	}
	slices.SortFunc(c.Refused, byCount)
	return c
}
