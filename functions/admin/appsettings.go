package admin

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// appSettings answers with the app as its operator has set it up, and a page of its keys.
func (h handler) appSettings(w http.ResponseWriter, r *http.Request) error {
	grant, err := h.Auth.Grant(r, auth.Admin)
	if err == nil {
		err = grant.Index("")
	}
	if err != nil {
		return err
	}
	most, after, err := keysQuery(r)
	if err != nil {
		return err
	}
	// Not from a cache: an operator who has just changed something looks here.
	app, err := h.Config.App(r.Context(), grant.App)
	if err != nil {
		return settingsError(err)
	}
	keys, err := h.Config.Keys(r.Context(), grant.App)
	if err != nil {
		return settingsError(err)
	}
	answer := h.renderApp(app)
	answer.Keys, answer.Cursor = pageOfKeys(grant, keys, most, after)
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// settingsError is the error of a read of the configuration. An app that was deleted since
// the check of its key is one that nobody knows.
func settingsError(err error) error {
	if errors.Is(err, config.ErrNotFound) {
		return auth.ErrCredentials
	}
	return fmt.Errorf("read the settings of an app: %w", err)
}

func (h handler) renderApp(app config.App) api.AppSettings {
	region, isolated := h.whole(h.Regions.Place(app).Read)
	movingTo := ""
	if app.Moving() {
		movingTo, _ = h.whole(app.Move.To)
	}
	if movingTo == region {
		movingTo = "" // only the tables change, or the move is at its end
	}
	n := h.Limits.Numbers(app.Limits)
	return api.AppSettings{
		ID: app.ID, CreatedAt: api.At(app.CreatedAt), Region: region, MovingTo: movingTo, Isolated: isolated,
		Dedicated:     queue.Of(h.Recompute.Queue, app.ID) != "",
		RetentionDays: app.RetentionDays, Consistency: string(cmp.Or(app.Consistency, config.Eventual)),
		BrowserRanking: app.BrowserRanking, TrackNames: app.TrackNames,
		Segments: app.Segments.On(), Identity: renderIdentity(app.Identity), Residency: renderResidency(app.Residency),
		Purposes: renderPurposes(app.Purposes), Holdout: renderHoldout(app.Holdout),
		Experiment: running(app.Experiment, h.Now()), StrategyVersion: app.StrategyVersion,
		Limits: api.AppLimits{
			EventsPerSecond: n.EventsPerSecond, ImportsPerSecond: n.ImportsPerSecond, ReadsPerSecond: n.ReadsPerSecond,
			JobsPerHour:       n.JobsPerHour,
			StrategiesPerHour: n.StrategiesPerHour, UserEventsPerDay: n.UserEventsPerDay, WriteWindowMs: n.WriteWindowMs,
		},
		OwnLimits: ownLimits(app.Limits),
	}
}

func renderResidency(r config.Residency) *api.AppResidency {
	if !r.On() {
		return nil
	}
	return &api.AppResidency{Mode: string(r.Mode), Regions: r.Regions, Home: r.Home,
		Rule: string(cmp.Or(r.Rule, "app")), Header: r.Header, Countries: r.Map, Leave: r.Leave}
}

func renderHoldout(h experiment.Holdout) *api.AppHoldout {
	if !h.On() {
		return nil
	}
	return &api.AppHoldout{Share: h.Share, Seed: h.Seed}
}

// running returns the name of an experiment that runs, "" if it does not.
func running(e experiment.Experiment, now time.Time) string {
	if !e.Runs(now) {
		return ""
	}
	return e.Name
}

func renderPurposes(s consent.Setting) (shown []api.AppPurpose) {
	for _, p := range s.Purposes {
		shown = append(shown, api.AppPurpose{Name: p.Name, Default: p.Default, Types: texts(p.Types), Names: p.Names,
			Facets: p.Facets, Signals: p.Signals, Surfaces: texts(p.Surfaces)})
	}
	return shown
}

func texts[T ~string](of []T) (all []string) {
	for _, v := range of {
		all = append(all, string(v))
	}
	return all
}

func renderIdentity(i config.Identity) api.AppIdentity {
	shown := api.AppIdentity{Mode: string(i.Mode), Trust: "server", Serve: "token"}
	if !i.On() {
		shown.Mode, i.Lookback = "off", cmp.Or(i.Lookback, config.DefaultLookback)
	}
	if i.TrustPages {
		shown.Trust = "pages"
	}
	if i.ServePersons {
		shown.Serve = "person"
	}
	const day = 24 * time.Hour
	switch {
	case i.Lookback%day == 0:
		shown.Lookback = fmt.Sprintf("%dd", i.Lookback/day)
	case i.Lookback%time.Hour == 0:
		shown.Lookback = fmt.Sprintf("%dh", i.Lookback/time.Hour)
	default:
		shown.Lookback = i.Lookback.String()
	}
	return shown
}

// whole returns the region that people know a region by. A region within another one is a
// set of tables in it, which an app has to itself.
func (h handler) whole(name string) (region string, isolated bool) {
	if one, ok := h.Regions.Find(name); ok && one.In != "" {
		return one.In, true
	}
	return name, false
}

// ownLimits names the limits that are not the deployment's defaults, as answers name them.
func ownLimits(n limit.Numbers) []string {
	own := []string{}
	for _, one := range []struct {
		name string
		n    int
	}{
		{"eventsPerSecond", n.EventsPerSecond}, {"importsPerSecond", n.ImportsPerSecond},
		{"readsPerSecond", n.ReadsPerSecond}, {"jobsPerHour", n.JobsPerHour},
		{"strategiesPerHour", n.StrategiesPerHour}, {"userEventsPerDay", n.UserEventsPerDay},
		{"writeWindowMs", n.WriteWindowMs},
	} {
		if one.n != 0 {
			own = append(own, one.name)
		}
	}
	return own
}

// keyPlace is the place of a key in the list. A cursor holds that of the last key of a page,
// so a key that is added or removed between two pages moves no other one to another page.
type keyPlace struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	ID      string    `json:"id"`
}

func placeOf(k config.Key) keyPlace { return keyPlace{k.Name, k.CreatedAt.UTC(), k.ID()} }

// compare sorts by name, and keys of one name with the newest first.
func (p keyPlace) compare(q keyPlace) int {
	return cmp.Or(strings.Compare(p.Name, q.Name), q.Created.Compare(p.Created), strings.Compare(p.ID, q.ID))
}

// keysQuery returns how many keys a request asks for, and behind which place; nil: from the
// first one on.
func keysQuery(r *http.Request) (most int, after *keyPlace, err error) {
	if most, err = httpapi.CountOption(r, "limit", api.DefaultKeys, api.MaxKeys); err != nil {
		return most, nil, err
	}
	if values := r.URL.Query(); values.Has("cursor") {
		text, err := base64.RawURLEncoding.DecodeString(values.Get("cursor"))
		if err == nil {
			err = json.Unmarshal(text, &after)
		}
		if err != nil || after == nil || after.ID == "" {
			return most, nil, httpapi.Errorf(http.StatusUnprocessableEntity,
				"cursor must be the cursor of another answer of this route")
		}
	}
	return most, after, nil
}

// pageOfKeys returns at most so many keys behind a place, and the cursor of the next page.
func pageOfKeys(grant auth.Grant, keys []config.Key, most int, after *keyPlace) (page []api.AppKey, cursor string) {
	keys = slices.Clone(keys) // they are the store's
	slices.SortFunc(keys, func(a, b config.Key) int { return placeOf(a).compare(placeOf(b)) })
	if after != nil {
		keys = slices.DeleteFunc(keys, func(k config.Key) bool { return placeOf(k).compare(*after) <= 0 })
	}
	page = []api.AppKey{}
	for _, k := range keys[:min(len(keys), most)] {
		page = append(page, renderKey(k, grant.Is(k)))
	}
	if len(keys) > most {
		place, _ := json.Marshal(placeOf(keys[most-1])) // texts and a time: it never fails
		cursor = base64.RawURLEncoding.EncodeToString(place)
	}
	return page, cursor
}

// renderKey says of a key all but its hash and its text.
func renderKey(k config.Key, current bool) api.AppKey {
	list := func(l []string) []string { return append([]string{}, l...) } // [] and never null
	key := api.AppKey{
		ID: k.ID(), Name: k.Name, Description: k.Description, ACL: list(k.ACL), CreatedAt: api.At(k.CreatedAt),
		Indexes: list(k.Indexes), Referers: list(k.Referers),
		AddressRate: k.AddressRate, HashTokens: k.HashTokens, Region: k.Region, Parent: len(k.Parent) > 0, Current: current,
	}
	if !k.ValidUntil.IsZero() {
		until := api.At(k.ValidUntil)
		key.ValidUntil = &until
	}
	return key
}
