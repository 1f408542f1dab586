package profiles

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// refusedLinks answers a page of the newest events that asked for a link and got none, and counts all of them.
func (h handler) refusedLinks(w http.ResponseWriter, r *http.Request, app config.App) error {
	query := r.URL.Query()
	reason := query.Get("reason")
	if query.Has("reason") && links.Reason(reason).Words() == "" {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "reason must be one of %s", reasonNames())
	}
	before, err := parseRefusedCursor(query.Get("cursor"))
	if err != nil {
		return err
	}
	list, days, err := h.Store.Refused.ReadRefusedLinks(r.Context(), app.ID, h.Now())
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(l store.RefusedLink) bool {
		return reason != "" && l.Reason != reason || before > 0 && l.Sequence >= before
	})
	answer := api.RefusedLinks{Refused: []api.RefusedLink{}, Days: countsByDay(days, reason)}
	for i, l := range list {
		// Links of one number share a page: the cursor is the number of the last.
		if i >= api.MaxRefusedLinks && l.Sequence != list[i-1].Sequence {
			answer.Cursor = strconv.FormatInt(list[i-1].Sequence, 10)
			break
		}
		answer.Refused = append(answer.Refused, api.RefusedLink{
			At: api.At(l.At), Reason: l.Reason, UserToken: l.User, AuthenticatedUserToken: l.Known,
			Time: api.AtMillis(l.Time), Event: l.Event,
		})
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

func reasonNames() string {
	all := links.Reasons()
	names := make([]string, len(all))
	for i, reason := range all {
		names[i] = strconv.Quote(string(reason))
	}
	return strings.Join(names, ", ")
}

func parseRefusedCursor(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	before, err := strconv.ParseInt(text, 10, 64)
	if err != nil || before < 1 {
		return 0, httpapi.Errorf(http.StatusUnprocessableEntity, "cursor must be the cursor of another answer of this route")
	}
	return before, nil
}

// countsByDay returns the counts of a reason, "" for all, the newest day first.
func countsByDay(days map[string]map[string]int64, reason string) []api.RefusedLinksDay {
	list := []api.RefusedLinksDay{}
	for _, day := range slices.Backward(slices.Sorted(maps.Keys(days))) {
		counts := days[day]
		if reason != "" {
			maps.DeleteFunc(counts, func(name string, _ int64) bool { return name != reason })
		}
		if len(counts) > 0 {
			list = append(list, api.RefusedLinksDay{Day: day, Counts: counts})
		}
	}
	return list
}
