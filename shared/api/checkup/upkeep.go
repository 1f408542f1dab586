package checkup

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

// statistics reports whether every index has statistics that are not old.
func (a Answers) statistics() Check {
	const build = "affinity crowd build"
	if a.Crowd == nil {
		return unknown(Statistics)
	}
	for _, b := range a.Crowd.Builds {
		if b.State == api.JobDone {
			break
		}
		if b.State == api.JobFailed && a.Now.Sub(b.StartedAt.Time) < failedLately {
			return fault(Statistics, "the build of statistics that started "+at(b.StartedAt.Time)+" failed: "+b.Error, build)
		}
	}
	missing, indexes := slices.Clone(a.Crowd.Indexes), []string(nil)
	for _, g := range a.Crowd.Generations {
		if g.State != api.JobDone {
			continue
		}
		if a.Now.Sub(g.AsOf.Time) > maintained {
			return fault(Statistics, fmt.Sprintf("those of the index %s are of %s: the nightly round has not built new ones",
				g.Index, at(g.AsOf.Time)), build)
		}
		indexes = append(indexes, fmt.Sprintf("%s as of %s", g.Index, at(g.AsOf.Time)))
		missing = slices.DeleteFunc(missing, func(index string) bool { return index == g.Index })
	}
	switch {
	case len(a.Crowd.Indexes) == 0:
		return ok(Statistics, "none, because no index has objects")
	case len(missing) == 0:
		return ok(Statistics, strings.Join(indexes, ", "))
	case a.Usage != nil && a.Usage.Total.Events == 0:
		return ok(Statistics, "none, because no events have arrived")
	}
	return fault(Statistics, "the index "+missing[0]+" has no crowd statistics, so rankings know nothing of what is popular there",
		build)
}

// folds reports whether a recompute has lately maintained the histories of users.
func (a Answers) folds() Check {
	const start = "affinity recompute start --full"
	if a.Recomputes == nil {
		return unknown(Folds)
	}
	var failed, last *api.Recompute
	for i, r := range a.Recomputes.Recomputes {
		switch {
		case r.State == api.JobFailed && failed == nil && last == nil:
			failed = &a.Recomputes.Recomputes[i]
		case r.State == api.JobDone && last == nil && (r.Maintain || r.Fold):
			last = &a.Recomputes.Recomputes[i]
		}
	}
	if failed != nil && a.Now.Sub(failed.StartedAt.Time) < failedLately {
		return fault(Folds, "the recompute that started "+at(failed.StartedAt.Time)+" failed: "+failed.Error, start)
	}
	switch {
	case last != nil && a.Now.Sub(last.StartedAt.Time) <= maintained:
		return ok(Folds, fmt.Sprintf("histories of %s maintained %s", count(last.Users, "user"),
			ago(a.Now, last.StartedAt.Time)))
	case !a.eventsBefore(maintained):
		return ok(Folds, "nothing to fold yet")
	case last != nil:
		return fault(Folds, "no recompute has maintained users' histories since "+at(last.StartedAt.Time)+
			": first reads become slow", start)
	}
	return fault(Folds, "no recompute has maintained users' histories: first reads become slow", start)
}

// eventsBefore reports whether events arrived on a day that ended before that long ago.
func (a Answers) eventsBefore(d time.Duration) bool {
	if a.Usage == nil {
		return true
	}
	day := a.Now.Add(-d).UTC().Format(time.DateOnly)
	return slices.ContainsFunc(a.Usage.Days, func(u api.UsageDay) bool { return u.Events > 0 && u.Day < day })
}

// keys reports whether a key ends soon that no newer one of its name replaces.
func (a Answers) keys() Check {
	if a.Settings == nil {
		return unknown(Keys)
	}
	var ending []api.AppKey
	for _, k := range a.Settings.Keys {
		if k.ValidUntil == nil || !a.Now.Before(k.ValidUntil.Time) || k.ValidUntil.Sub(a.Now) >= keySoon {
			continue
		}
		replaced := slices.ContainsFunc(a.Settings.Keys, func(other api.AppKey) bool {
			return k.Name != "" && other.Name == k.Name && (other.ValidUntil == nil || other.ValidUntil.Sub(a.Now) >= keySoon)
		})
		if !replaced {
			ending = append(ending, k)
		}
	}
	if len(ending) == 0 {
		return ok(Keys, count(int64(len(a.Settings.Keys)), "key")+", none that ends within "+
			count(int64(keySoon/(24*time.Hour)), "day"))
	}
	slices.SortFunc(ending, func(a, b api.AppKey) int { return a.ValidUntil.Compare(b.ValidUntil.Time) })
	first := ending[0]
	text := fmt.Sprintf("the key %s ends %s", called(first), at(first.ValidUntil.Time))
	if len(ending) > 1 {
		text += fmt.Sprintf(", and %d more within %s", len(ending)-1, count(int64(keySoon/(24*time.Hour)), "day"))
	}
	if first.Name == "" {
		return fault(Keys, text, "affinity app key add "+a.Settings.ID+" --acl "+strings.Join(first.ACL, ","))
	}
	return fault(Keys, text, "affinity app key rotate "+a.Settings.ID+" "+first.Name)
}

// called is what a person calls a key: its name, or its id.
func called(k api.AppKey) string {
	if k.Name != "" {
		return k.Name
	}
	return k.ID
}
