package console

import (
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// setting is what an operator has set, in words.
type setting struct {
	Name, Value, Hint string
	Own               bool   // it is set for this app alone
	Command           string // that changes it; empty: none does
	Path, Link        string // to the page that is about it
}

// permission is one of a key, with its words.
type permission struct{ Name, Words string }

// permissionWords say what each permission allows.
var permissionWords = map[string]string{
	auth.Search:         "sends events",
	auth.Recommendation: "reads and deletes profiles, ranks, reads and sets the strategy, counts segments",
	auth.AddObject:      "puts objects into the catalog",
	auth.DeleteObject:   "removes objects and users",
	auth.Settings:       "reads and sets the settings of indexes, and feeds",
	auth.ProfilesRead:   "reads and explains profiles",
	auth.Admin:          "imports events, starts jobs, lists and exports users, reads the audit log and this page",
	auth.Usage:          "reads what the app used",
}

func permissionOf(name string) permission { return permission{name, permissionWords[name]} }

// settingsOf says how an app is set up.
func settingsOf(a api.AppSettings) []setting {
	app := func(command string) string { return "affinity app " + command }
	all := []setting{{Name: "App", Value: a.ID, Hint: "Created on " + a.CreatedAt.UTC().Format("2 January 2006") + "."}}
	if a.Region != "" {
		region := setting{Name: "Region", Value: a.Region,
			Hint: "The events and profiles of the app are stored there.", Command: app("move " + a.ID + " --to REGION")}
		if a.MovingTo != "" {
			region.Value, region.Command = "Moves from "+a.Region+" to "+a.MovingTo, app("region "+a.ID)
		}
		all = append(all, region, either(a.Isolated, setting{
			Name: "Tables", Value: "Its own", Hint: "No other app has rows in the Bigtable tables of this one.",
			Command: app("isolate " + a.ID + " --common"),
		}, setting{Name: "Tables", Value: "Shared",
			Hint: "Apps share the Bigtable tables of the region. Each sees its own rows.", Command: app("isolate " + a.ID)}))
	}
	if a.Dedicated {
		all = append(all, setting{Name: "Queues", Value: "Its own",
			Hint: "Events and jobs of the app wait behind no other app. The Terraform configuration of the engine says so."})
	}
	keeps := setting{Name: "Retention", Value: "Events count for " + plural(a.RetentionDays, "day"),
		Command: app(fmt.Sprintf("retention %s %d", a.ID, a.RetentionDays))}
	if a.RetentionDays == 0 {
		keeps.Value = "Events count for ever"
	}
	all = append(all, keeps,
		either(a.Consistency == "strong", setting{
			Name: "Reads of profiles", Value: "Strong",
			Hint:    "Reads see each deletion at once, and go to the cluster that events are written to.",
			Command: app("consistency " + a.ID + " eventual"),
		}, setting{
			Name: "Reads of profiles", Value: "Eventual",
			Hint: "Reads go to the nearest cluster, which may lag behind by seconds. With one cluster that is the " +
				"same as strong.",
			Command: app("consistency " + a.ID + " strong"),
		}),
		either(a.BrowserRanking, setting{
			Name: "Ranking from web pages", Value: "On",
			Hint:    "Keys with the permission search get the order of objects for every user whose token they know.",
			Command: app("ranking " + a.ID + " --browser off"),
		}, setting{
			Name: "Ranking from web pages", Value: "Off",
			Hint:    "Keys with the permission search alone get no order. Secured keys get that of their own user.",
			Command: app("ranking " + a.ID + " --browser on"),
		}),
		either(a.Segments, setting{
			Name: "Segments", Value: "On", Hint: "Users can be found by what they like.",
			Command: app("segments " + a.ID + " off"),
		}, setting{Name: "Segments", Value: "Off", Hint: "Users cannot be found by what they like.",
			Command: app("segments " + a.ID + " on")}))
	all = append(all, identityOf(a), residencyOf(a), purposesOf(a), holdoutOf(a), namesOf(a.TrackNames))
	strategy := setting{Name: "Strategy", Value: "Version " + number(a.StrategyVersion) + " is active",
		Path: "/console/strategy", Link: "See it"}
	if a.StrategyVersion == 0 {
		strategy.Value, strategy.Link = "None is set", "Set one"
	}
	return append(all, strategy)
}

// identityOf says whether the app links the tokens of a person.
func identityOf(a api.AppSettings) setting {
	set := "affinity app identity " + a.ID + " --mode "
	s := setting{Name: "Links between tokens", Value: "Off",
		Hint:    "What a visitor did before they signed in stays in the profile of their anonymous token.",
		Command: set + "collect"}
	switch a.Identity.Mode {
	case "collect":
		s.Value, s.Command = "Collected", set+"link"
		s.Hint = "Links are made when users sign in, and nothing counts by them yet."
	case "link":
		s.Value, s.Command = "On", set+"collect"
		s.Hint = "What a visitor did in the " + a.Identity.Lookback + " before they signed in counts for the user, too."
	}
	if a.Identity.Mode != "off" {
		s.Path, s.Link = refusedLinksPath, "See refused links"
	}
	if a.Identity.Mode != "off" && a.Identity.Trust == "pages" {
		s.Hint += " Keys in web pages may say who has signed in: anybody can."
	}
	if a.Identity.Mode == "link" && a.Identity.Serve == "person" {
		s.Hint += " A page that knows the anonymous token gets the order of the user."
	}
	return s
}

// purposesOf says what the app uses events for.
func purposesOf(a api.AppSettings) setting {
	s := setting{Name: "Purposes", Value: "None", Command: "affinity app purposes " + a.ID + " --file purposes.json",
		Hint: "All events count. With purposes, an event counts if it serves one that the user grants."}
	var all []string
	for _, p := range a.Purposes {
		all = append(all, p.Name)
	}
	if len(all) > 0 {
		s.Value, s.Command = strings.Join(all, ", "), "affinity app purposes "+a.ID
		s.Hint = "An event counts if it serves a purpose that the user grants. The page of a user says which they grant."
	}
	return s
}

// holdoutOf says whom the app holds out.
func holdoutOf(a api.AppSettings) setting {
	s := setting{Name: "Holdout", Value: "Nobody is held out", Command: "affinity app holdout " + a.ID + " --share 5%",
		Hint: "Users who are held out get no personalization, so that the others can be compared with them."}
	if a.Holdout != nil {
		s.Value = strconv.FormatFloat(a.Holdout.Share*100, 'g', 4, 64) + " % of the users, by the seed " + a.Holdout.Seed
		s.Command = "affinity app holdout " + a.ID + " --share 0"
	}
	return s
}

// residencyOf says where the users of the app live.
func residencyOf(a api.AppSettings) setting {
	set := "affinity app residency " + a.ID
	s := setting{Name: "Where users live", Value: "In the region of the app", Command: set + " --mode prepare --live-in REGION,REGION",
		Hint: "In a deployment with several regions each user can have a region of their own."}
	r := a.Residency
	switch {
	case r == nil:
		return s
	case r.Mode != "on":
		s.Value, s.Command = "In "+r.Home+", others are prepared", set+" --mode on"
		s.Hint = "Each user has a location, which is still the region of the app."
		return s
	}
	s.Value, s.Command = "In "+strings.Join(r.Regions, ", "), set
	s.Hint = map[string]string{
		"app":    "A new user begins in " + r.Home + ".",
		"key":    "A new user begins in the region of the key that sends their first event, or else in " + r.Home + ".",
		"header": "A new user begins in the region of the country in the header " + r.Header + ", or else in " + r.Home + ".",
	}[r.Rule]
	for region, to := range r.Leave {
		s.Hint += " Users leave " + region + " for " + to + "."
	}
	return s
}

// namesOf says which names of track calls the app has given a type.
func namesOf(types map[string]string) setting {
	s := setting{Name: "Names of track calls", Value: "None of its own",
		Hint:    "Calls of Segment and RudderStack with a name of Segment's specification have a type. Others need one here.",
		Command: "affinity events names 'Recipe Saved=conversion'"}
	if len(types) > 0 {
		names := slices.Sorted(maps.Keys(types))
		for i, name := range names {
			names[i] += ": " + types[name]
		}
		s.Value = strings.Join(names, ", ")
	}
	return s
}

func either(so bool, yes, no setting) setting {
	if so {
		return yes
	}
	return no
}

// limitsOf says what an app may send and ask for. left is how many requests it has left in this second;
// "": nobody knows.
func limitsOf(a api.AppSettings, left string) []setting {
	var all []setting
	for _, l := range []struct {
		field, flag, name, hint string
		n                       int
	}{
		{"eventsPerSecond", "events-per-second", "Events per second",
			"More take the slow lane; beyond twice as many they are refused.", a.Limits.EventsPerSecond},
		{"importsPerSecond", "imports-per-second", "Imported events per second", "More are refused.",
			a.Limits.ImportsPerSecond},
		{"readsPerSecond", "reads-per-second", "Reads and other requests per second", "More are refused.",
			a.Limits.ReadsPerSecond},
		{"jobsPerHour", "jobs-per-hour", "Jobs started per hour", "More are refused.", a.Limits.JobsPerHour},
		{"strategiesPerHour", "strategies-per-hour", "Strategies set per hour", "More are refused.",
			a.Limits.StrategiesPerHour},
		{"userEventsPerDay", "user-events-per-day", "Events of one user per day",
			"More are accepted and do not count.", a.Limits.UserEventsPerDay},
	} {
		all = append(all, setting{
			Name: l.name, Value: number(l.n), Hint: l.hint, Own: slices.Contains(a.OwnLimits, l.field),
			Command: fmt.Sprintf("affinity app limits %s --%s %d", a.ID, l.flag, l.n),
		})
		if l.field == "readsPerSecond" && left != "" {
			all[len(all)-1].Hint += " " + left + " left now."
		}
	}
	window := setting{
		Name: "Write window", Value: "None", Hint: "Events change the stored profile one message at a time.",
		Own:     slices.Contains(a.OwnLimits, "writeWindowMs"),
		Command: "affinity app limits " + a.ID + " --write-window 2s",
	}
	if ms := a.Limits.WriteWindowMs; ms > 0 {
		window.Value = (time.Duration(ms) * time.Millisecond).String()
		window.Hint = "The events of a user in this time share one write of the profile. Reads count them at once."
		window.Command = "affinity app limits " + a.ID + " --write-window 0"
	}
	return append(all, window)
}

// command is a command of the operator, for people to copy.
type command struct{ What, Text string }

// maxAlike is how many bytes a command has that makes a key like another one: nobody copies a longer one.
const maxAlike = 600

// newKeys are commands that make keys, under names that no key has.
func newKeys(app api.AppSettings) []command {
	free := func(name string) string {
		for n, one := 2, name; ; n++ {
			if !slices.ContainsFunc(app.Keys, func(k api.AppKey) bool { return k.Name == one }) {
				return one
			}
			one = name + "-" + strconv.Itoa(n)
		}
	}
	add := "affinity app key add " + app.ID + " --name "
	return []command{
		{"For a web page: it sends events and does nothing else",
			add + free("web") + " --acl search --referers 'https://*.shop.example/*'"},
		{"For your server: it reads profiles, ranks and sets the strategy", add + free("server") + " --acl recommendation"},
		{"For a person who works in the console",
			add + free("person") + " --acl recommendation,admin,usage --valid-for 2160h"},
	}
}

// newAdmin is the command that makes the key which the page needs.
func newAdmin(app string) command {
	return command{"A key that may see the app and its keys",
		"affinity app key add " + app + " --name console --acl admin"}
}

// keyCommands are the commands about a key. same is how many keys have its name, and valid whether
// one of them is.
func keyCommands(app string, k keyCard, same int, valid bool) []command {
	var all []command
	if k.Name != "" && k.Newer == "" && valid {
		all = append(all, command{"Replace it: the old key ends after a day",
			"affinity app key rotate " + app + " " + k.Name})
	}
	remove := command{"Revoke it within five seconds", "affinity app key remove " + app + " " + k.ID}
	if same == 1 {
		remove.Text = "affinity app key remove " + app + " --name " + k.Name
	}
	all = append(all, remove)
	if text := alike(app, k); len(k.ACL) > 0 && len(text) <= maxAlike {
		all = append(all, command{"Make another one with the same permissions", text})
	}
	return all
}

// alike is the command that makes another key with what a key permits.
func alike(app string, k keyCard) string {
	var b strings.Builder
	b.WriteString("affinity app key add " + app + " --name NAME --acl " + shellArg(listed(k.ACL)))
	if len(k.Indexes) > 0 {
		b.WriteString(" --indexes " + shellArg(listed(k.Indexes)))
	}
	if len(k.Referers) > 0 {
		b.WriteString(" --referers " + shellArg(listed(k.Referers)))
	}
	if k.AddressRate > 0 {
		fmt.Fprintf(&b, " --per-address %d", k.AddressRate)
	}
	if k.HashTokens {
		b.WriteString(" --hash-tokens")
	}
	if k.Region != "" {
		b.WriteString(" --in " + k.Region)
	}
	if k.Parent {
		b.WriteString(" --parent")
	}
	if k.ValidUntil != nil && k.Newer == "" { // an older key ends earlier than it was made for
		fmt.Fprintf(&b, " --valid-for %dh", max(1, int(k.ValidUntil.Sub(k.CreatedAt.Time)/time.Hour)))
	}
	return b.String()
}

// listed writes a list as a flag takes it: values with commas or quotes are quoted.
func listed(list []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(list) // a strings.Builder takes all
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}
