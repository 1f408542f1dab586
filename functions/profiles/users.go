package profiles

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/intake/recent"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// usersQuery is what a request for a page of users asks for.
type usersQuery struct {
	prefix, after string
	limit         int
}

func readUsersQuery(r *http.Request) (usersQuery, error) {
	values := r.URL.Query()
	q := usersQuery{prefix: values.Get("prefix"), after: values.Get("cursor")}
	if q.prefix != "" && !event.ValidUserToken(q.prefix) {
		return q, httpapi.Errorf(http.StatusUnprocessableEntity,
			"prefix must be the beginning of a user token: letters, digits and = + / - _")
	}
	if q.after != "" && !event.ValidUserToken(q.after) {
		return q, httpapi.Errorf(http.StatusUnprocessableEntity, "cursor must be the cursor of another answer of this route")
	}
	var err error
	q.limit, err = recentLimit(r, api.DefaultUsers, api.MaxProfiles)
	return q, err
}

// users answers a page of the users who have an event within the retention. It reads the
// profile of each: rows remain of deleted users and of those whose events have expired.
func (h handler) users(w http.ResponseWriter, r *http.Request, app config.App) error {
	q, err := readUsersQuery(r)
	if err != nil {
		return err
	}
	tokens, err := h.Store.Users.ListUsers(r.Context(), app.ID, q.prefix, q.after, q.limit)
	if err != nil {
		return err
	}
	if err := h.Charge(r.Context(), app.ID, limit.Reads, max(len(tokens)-1, 0)); err != nil {
		return err
	}
	h.Usage.Reads(app.ID, len(tokens))
	known := make(map[string]api.ListedUser, len(tokens))
	err = h.Profiles.ReadEach(r.Context(), app, tokens, 1, func(user string, result profile.Result) error {
		if result.Known {
			known[user] = api.ListedUser{UserToken: user, LastEventAt: api.AtMillis(result.LastEventAt), Total: result.Total}
		}
		return nil
	})
	var faulty profile.Faulty
	if err != nil && !errors.As(err, &faulty) {
		return fmt.Errorf("read profiles: %w", err)
	}
	answer := api.Users{Users: make([]api.ListedUser, 0, len(known))}
	for _, token := range tokens {
		if user, is := known[token]; is {
			answer.Users = append(answer.Users, user)
		} else if faulty[token] != nil {
			answer.Faulty = append(answer.Faulty, token)
		}
	}
	if len(tokens) == q.limit {
		answer.Cursor = tokens[len(tokens)-1]
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// maxRecent is how many events of the sample a request reads at most: the newest. Each
// has at most some kilobytes. statesAtOnce is for how many events it reads the states of
// users at a time.
const (
	maxRecent    = 2_000
	statesAtOnce = 200
)

// recentEvents answers with the sample of the last minutes.
func (h handler) recentEvents(w http.ResponseWriter, r *http.Request, app config.App) error {
	limit, err := recentLimit(r, api.DefaultRecentEvents, api.MaxRecentEvents)
	if err != nil {
		return err
	}
	after := r.URL.Query().Get("after")
	since, err := parseCursor(after)
	if err != nil {
		return err
	}
	all, err := h.sample(r, app, since)
	if err != nil {
		return err
	}
	answer := api.RecentEvents{Events: []api.RecentEvent{}, Cursor: after, Sampled: true}
	var newest time.Time
	for _, e := range all {
		if e.Written.After(newest) {
			newest = e.Written
		}
	}
	if !newest.IsZero() {
		answer.Cursor = newest.UTC().Format(cursorForm)
	}
	for events := range slices.Chunk(all, limit) {
		counted, err := h.counted(r, app, events)
		if err != nil {
			return err
		}
		for _, e := range counted[:min(len(counted), limit-len(answer.Events))] {
			answer.Events = append(answer.Events, recentView(e))
		}
		if len(answer.Events) == limit {
			break
		}
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// cursorForm is the form of a cursor: the instant at which the sample got an event, to the
// millisecond, as Bigtable keeps it.
const cursorForm = "2006-01-02T15:04:05.000Z"

// parseCursor returns the instant of a cursor, the zero time if there is none.
func parseCursor(after string) (time.Time, error) {
	if after == "" {
		return time.Time{}, nil
	}
	since, err := time.Parse(cursorForm, after)
	if err != nil || since.Year() < 1971 || since.Year() > 2199 { // Bigtable's times are in microseconds since 1970
		err = httpapi.Errorf(http.StatusUnprocessableEntity, "after must be the cursor of another answer of this route")
	}
	return since, err
}

func recentView(e store.RecentEvent) api.RecentEvent {
	return api.RecentEvent{
		ReceivedAt: api.AtMillis(e.Receipt), UserToken: e.User, EventType: string(e.Type), EventName: e.Name, Index: e.Index,
		ObjectIDs: append([]string{}, e.ObjectIDs...), Filters: append([]string{}, e.Filters...),
	}
}

// recentUsers answers with the users of the sample.
func (h handler) recentUsers(w http.ResponseWriter, r *http.Request, app config.App) error {
	limit, err := recentLimit(r, api.DefaultRecentUsers, api.MaxRecentUsers)
	if err != nil {
		return err
	}
	all, err := h.sample(r, app, time.Time{})
	if err != nil {
		return err
	}
	answer, at := api.RecentUsers{Users: []api.RecentUser{}}, map[string]int{}
	for events := range slices.Chunk(all, statesAtOnce) {
		counted, err := h.counted(r, app, events)
		if err != nil {
			return err
		}
		for _, e := range counted {
			i, known := at[e.User]
			if !known {
				i = len(answer.Users)
				at[e.User] = i
				answer.Users = append(answer.Users, api.RecentUser{UserToken: e.User, LastEventAt: api.AtMillis(e.Receipt)})
			}
			answer.Users[i].Events++
		}
	}
	answer.Users = answer.Users[:min(len(answer.Users), limit)]
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

func recentLimit(r *http.Request, absent, most int) (int, error) {
	limit, err := positive(r, "limit", absent)
	if err == nil && limit > most {
		err = httpapi.Errorf(http.StatusUnprocessableEntity, "limit must be an integer from 1 to %d", most)
	}
	return limit, err
}

// sample reads the sample of an app, the newest event first.
func (h handler) sample(r *http.Request, app config.App, since time.Time) ([]store.RecentEvent, error) {
	events, err := h.Store.Recent.List(r.Context(), app.ID, h.Now(), since, maxRecent)
	if err != nil {
		return nil, fmt.Errorf("read recent events: %w", err)
	}
	bytes := 0
	for i := range events {
		bytes += events[i].Size()
	}
	return events, admission.Take(r.Context(), answerWeight*int64(bytes))
}

// counted returns the events that no deletion and no opt-out excludes, as of now.
func (h handler) counted(r *http.Request, app config.App, events []store.RecentEvent) ([]store.RecentEvent, error) {
	users := make([]string, len(events))
	for i := range events {
		users[i] = events[i].User
	}
	states, err := h.Profiles.States(r.Context(), app, users)
	if err != nil {
		return nil, fmt.Errorf("read the states of users: %w", err)
	}
	return recent.Counted(app.Purposes, events, states), nil
}
