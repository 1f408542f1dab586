package console

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func init() {
	pages = append(pages, page{pattern: "GET /console/app", section: "app", template: "app", load: loadApp})
}

const (
	appPath = "/console/app"
	// shownKeys is how many keys a page has.
	shownKeys    = 25
	shownChanges = 6
	// soon is how long before its end a key is marked.
	soon = 14 * 24 * time.Hour
)

// appPage is what the page about the app and its keys shows.
type appPage struct {
	Now         time.Time    // by which keys end: no simulated clock
	Engine      time.Time    // the engine's clock
	Permissions []permission // of the session
	Answer      part[api.AppSettings]
	Settings    []setting
	Limits      []setting
	Changes     part[api.AuditLog]
	// Keys are those of this page. All counts those of the app; Ended, Soon and Endless are how
	// many of them have ended, end soon, and do not end.
	Keys                      []keyCard
	All, Ended, Soon, Endless int
	First, Last               int // of All, from 1
	Previous, Next            string
	// Mine is the key of the session; nil if the session may not see keys.
	Mine *keyCard
	// More is whether the app has more keys than the page knows.
	More bool
	// Add are commands that make keys.
	Add []command
}

func loadApp(v *visit) (any, error) {
	v.title = "App and keys"
	p, a := &appPage{Now: time.Now(), Engine: v.now()}, &asks{}
	for _, name := range v.grant.Permissions() {
		p.Permissions = append(p.Permissions, permissionOf(name))
	}
	if !v.may(auth.Admin) {
		p.Add = []command{newAdmin(v.session.App)}
		return p, nil
	}
	v.command = "affinity settings\naffinity audit-log"
	ask(a, &p.Answer, func() (api.AppSettings, error) {
		return v.engine.AppSettings(v.Context(), api.AppSettingsQuery{Limit: api.MaxKeys})
	})
	ask(a, &p.Changes, func() (api.AuditLog, error) {
		return v.engine.AuditLog(v.Context(), api.AuditLogQuery{Limit: shownChanges})
	})
	a.wait()
	if !p.Answer.OK {
		p.Add = []command{newAdmin(v.session.App)}
		return p, nil
	}
	app := p.Answer.Got
	p.Settings, p.Limits = settingsOf(app), limitsOf(app, v.made.header("X-Ratelimit-Remaining"))
	p.Add, p.More = newKeys(app), app.Cursor != ""
	return p, p.list(v.URL.Query().Get("page"))
}

// list takes the keys of one page from those of the app. The key of the session comes first.
func (p *appPage) list(numbered string) error {
	cards := cardsOf(p.Answer.Got, p.Now)
	if i := slices.IndexFunc(cards, func(k keyCard) bool { return k.Current }); i > 0 {
		mine := cards[i]
		cards = slices.Insert(slices.Delete(cards, i, i+1), 0, mine)
	}
	for i, k := range cards {
		switch {
		case k.Ended:
			p.Ended++
		case k.Soon:
			p.Soon++
		case k.ValidUntil == nil:
			p.Endless++
		}
		if k.Current {
			p.Mine = &cards[i]
		}
	}
	p.All = len(cards)
	number, begin := 1, 0
	if numbered != "" {
		n, err := strconv.Atoi(numbered)
		if err != nil || n < 1 || n > 1+max(0, p.All-1)/shownKeys {
			return &api.Error{Status: http.StatusNotFound, Message: "The list of keys has no such page"}
		}
		number, begin = n, (n-1)*shownKeys
	}
	p.Keys = cards[begin:min(p.All, begin+shownKeys)]
	p.First, p.Last = begin+1, begin+len(p.Keys)
	if number > 1 {
		p.Previous = appPath + "?page=" + strconv.Itoa(number-1) + "#keys"
	}
	if p.Last < p.All {
		p.Next = appPath + "?page=" + strconv.Itoa(number+1) + "#keys"
	}
	return nil
}

// keyCard is a key of the list.
type keyCard struct {
	api.AppKey
	Called      string // by people: its name, or its id
	Permissions []permission
	Ended       bool
	Soon        bool   // it ends soon
	End         string // when it ends, in words
	// Newer is the id of the key that replaces this one, and Older how many keys this one
	// replaces. They have its name.
	Newer    string
	Older    int
	Commands []command
}

// cardsOf returns the keys of an app, of which those of one name have the newest first.
func cardsOf(app api.AppSettings, now time.Time) []keyCard {
	named, valid := map[string][]api.AppKey{}, map[string]bool{}
	for _, k := range app.Keys {
		if k.Name != "" {
			named[k.Name] = append(named[k.Name], k)
			valid[k.Name] = valid[k.Name] || !ended(k, now)
		}
	}
	cards := make([]keyCard, len(app.Keys))
	for i, k := range app.Keys {
		card := keyCard{AppKey: k, Called: k.Name, Ended: ended(k, now), End: endOf(k, now)}
		card.Soon = !card.Ended && k.ValidUntil != nil && k.ValidUntil.Sub(now) < soon
		if k.Name == "" {
			card.Called = k.ID
		}
		for _, name := range k.ACL {
			card.Permissions = append(card.Permissions, permissionOf(name))
		}
		same := named[k.Name]
		if len(same) > 1 && same[0].ID == k.ID {
			card.Older = len(same) - 1
		} else if len(same) > 1 {
			card.Newer = same[0].ID
		}
		card.Commands = keyCommands(app.ID, card, len(same), valid[k.Name])
		cards[i] = card
	}
	return cards
}

func ended(k api.AppKey, now time.Time) bool {
	return k.ValidUntil != nil && !now.Before(k.ValidUntil.Time)
}

// endOf says when a key ends.
func endOf(k api.AppKey, now time.Time) string {
	if k.ValidUntil == nil {
		return "No end"
	}
	if ended(k, now) {
		return "Ended " + ago(now, k.ValidUntil.Time)
	}
	return "Ends in " + until(k.ValidUntil.Sub(now))
}

// until says a time that is to come.
func until(d time.Duration) string {
	switch {
	case d < time.Hour:
		return "less than an hour"
	case d < 48*time.Hour:
		return plural(int(d/time.Hour), "hour")
	}
	return plural(int(d/(24*time.Hour)), "day")
}

// patterns are as many of a list as a card shows.
const patterns = 5

// Short returns the first patterns of a list.
func (keyCard) Short(list []string) []string { return list[:min(len(list), patterns)] }

// Rest returns how many patterns Short leaves out.
func (keyCard) Rest(list []string) int { return max(0, len(list)-patterns) }
