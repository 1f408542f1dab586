package console_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/web/auth"
)

const appPath = "/console/app"

// put adds a key whose text is its name and the age in hours.
func (s *site) put(k config.Key) {
	s.t.Helper()
	k.Hash = auth.Hash(fmt.Sprint(k.Name, k.CreatedAt, k.Description))
	s.must(s.stack.Backends.Config.PutKey(s.t.Context(), "shop", k))
}

// fillKeys adds so many keys: some without an end, some that have ended or end soon, with
// bounds and without, and of each tenth name two.
func (s *site) fillKeys(n int) {
	s.t.Helper()
	now := time.Now()
	for i := range n {
		k := config.Key{Name: fmt.Sprintf("page-%03d", i), ACL: []string{auth.Search}, CreatedAt: now.Add(-time.Duration(i+1) * time.Hour), Description: "The pages of shop " + fmt.Sprint(i)}
		switch i % 5 {
		case 1:
			k.ValidUntil = now.Add(time.Duration(i) * 12 * time.Hour)
		case 2:
			k.ValidUntil = now.Add(-time.Minute)
		case 3:
			k.ACL, k.Indexes, k.Referers, k.AddressRate = auth.All, []string{"products*", "news_*"}, []string{"https://*.shop.example/cart/*"}, 60
		case 4:
			k.Name, k.ACL = "", []string{auth.Recommendation, auth.ProfilesRead, auth.Usage}
		}
		if i%10 == 1 {
			k.Name = fmt.Sprintf("page-%03d", i-1)
		}
		s.put(k)
	}
}

// fillHostileKeys adds keys with texts that attackers might write.
func (s *site) fillHostileKeys() {
	s.t.Helper()
	for i, text := range hostile {
		text = strings.TrimSpace(text[:min(len(text), 500)])
		if text == "" {
			continue
		}
		s.put(config.Key{Description: text, ACL: []string{text, auth.Search}, Indexes: []string{text}, Referers: []string{text, "a,b", `c"d`}, AddressRate: i, CreatedAt: time.Now()})
	}
}

func TestAppPageOfOneKey(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.login(key)
	page := p.page(appPath)
	s.shows(page, "<h1>App and keys</h1>", "Events count for 90 days", "affinity app retention shop 90", "affinity app consistency shop strong", "affinity app ranking shop --browser on",
		"affinity app segments shop on", "affinity app limits shop --reads-per-second 2000", "None is set", "1 key<", "This session uses the only key of the app",
		`id="this-key"`, "this session", "parent of secured keys", "affinity settings", "/1/app?limit=1000")
	s.shows(page, `href="/console/app" aria-current="page"`)
	s.lacks(page, auth.Hash(key)[:13], key, "Region", "set for this app", "<form method=\"post\" action=\"/console/app")
	s.shows(p.page("/"), `href="/console/app"`, `href="/console/app#this-key"`)
	store := s.stack.Backends.Config
	for _, err := range []error{
		store.SetRetention(t.Context(), "shop", 0), store.SetConsistency(t.Context(), "shop", config.Strong), store.SetBrowserRanking(t.Context(), "shop", true),
		store.SetSegments(t.Context(), "shop", true), store.SetLimits(t.Context(), "shop", limit.Numbers{JobsPerHour: 7, WriteWindowMs: 2000}),
	} {
		s.must(err)
	}
	_, err := store.SetTrackNames(t.Context(), "shop", config.TrackNames{"Recipe Saved": "conversion", "<b>": "view"})
	s.must(err)
	s.shows(p.page(appPath), "&lt;b&gt;: view, Recipe Saved: conversion", "affinity events names")
	s.shows(p.page(appPath), "Events count for ever", "affinity app retention shop 0", "affinity app consistency shop eventual", "affinity app ranking shop --browser off", "affinity app segments shop off",
		"affinity app limits shop --jobs-per-hour 7", "set for this app", "affinity app limits shop --write-window 0")
}

// Keys are marked by when they end, and by which of one name replaces which.
func TestAppPageMarksKeys(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	now := time.Now()
	s.put(config.Key{Name: "web", ACL: []string{auth.Search}, CreatedAt: now.Add(-time.Hour), Referers: []string{"https://*.shop.example/*"}, AddressRate: 60})
	s.put(config.Key{Name: "web", ACL: []string{auth.Search}, CreatedAt: now.Add(-48 * time.Hour), ValidUntil: now.Add(23*time.Hour + 30*time.Minute)})
	s.put(config.Key{Name: "segment", ACL: []string{auth.Search}, CreatedAt: now, HashTokens: true})
	s.put(config.Key{Name: "late", ACL: []string{auth.Usage}, CreatedAt: now.Add(-72 * time.Hour), ValidUntil: now.Add(-3 * time.Hour)})
	s.put(config.Key{Name: "far", ACL: []string{auth.AddObject, auth.Settings}, CreatedAt: now, ValidUntil: now.Add(720*time.Hour + time.Second), Indexes: []string{"a", "b*", "c", "d", "e", "f", "g"}})
	page := s.login(key).page(appPath)
	s.shows(page, "6 keys", `<span class="tag bad">1 ended</span>`, `<span class="tag warn">1 ends within 14 days</span>`, "3 without an end", "hashes ids of users", "--acl search --hash-tokens")
	s.shows(page, "affinity app key add shop --name web-2 --acl search")
	keys := map[string]string{} // the cards by name and end
	for card := range strings.SplitSeq(page, `<li`) {
		card, _, _ = strings.Cut(card, "</li>")
		for _, name := range []string{"late", "far", "No end", "Ends in 23 hours"} {
			if strings.Contains(card, "app-life") && strings.Contains(card, name) {
				keys[name] += card
			}
		}
	}
	s.shows(keys["late"], "Ended 3 hours ago", "affinity app key remove shop --name late")
	s.lacks(keys["late"], "key rotate")
	s.shows(keys["far"], "Ends in 30 days", "affinity app key rotate shop far", "and 2 more", "affinity app key add shop --name NAME --acl addObject,settings --indexes &#39;a,b*,c,d,e,f,g&#39; --valid-for 720h")
	s.shows(keys["No end"], "Replaces 1 older key of this name", "affinity app key rotate shop web", "60 requests a minute from an address",
		"--acl search --referers &#39;https://*.shop.example/*&#39; --per-address 60")
	s.shows(keys["Ends in 23 hours"], "Replaced by", `<span class="tag warn">`)
	s.lacks(keys["Ends in 23 hours"], "key rotate", "--name web")
}

// A hundred keys are on pages, with that of the session first, and each page is small.
func TestAppPageOfManyKeys(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fillKeys(99)
	p := s.login(key)
	seen := 0
	for n, path := 1, appPath; ; n++ {
		page := p.page(path)
		seen += strings.Count(page, "app-life")
		if first := strings.Contains(page, `id="this-key"`); first != (n == 1) {
			t.Errorf("page %d has the key of the session: %v", n, first)
		}
		if len(page) > 70_000 {
			t.Errorf("page %d has %d bytes", n, len(page))
		}
		s.lacks(page, "ZgotmplZ", "%!", "<nil>")
		s.shows(page, "100 keys", "of 100</span>")
		path = fmt.Sprintf("%s?page=%d", appPath, n+1)
		if !strings.Contains(page, path+"#keys") {
			break
		}
	}
	if seen != 100 {
		t.Errorf("the pages have %d keys, want 100", seen)
	}
	for _, number := range []string{"5", "0", "-1", "x", "99999999999999999999"} {
		p.get(http.StatusNotFound, appPath+"?page="+number)
	}
}

// What a key is called and is for may be anything: it is a text on the page, and one argument of a
// command.
func TestAppPageEscapes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fillHostileKeys()
	page := s.login(key).page(appPath)
	s.lacks(page, raw...)
	s.shows(page, "&lt;script&gt;alert(1)&lt;/script&gt;", `\u202egnp.exe`, "affinity app key add shop --name NAME --acl")
}

// Who may not see keys sees their own permissions, and what the page needs.
func TestAppPageFollowsPermissions(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, k := range []config.Key{
		{Hash: auth.Hash("reader"), Name: "reader-key", ACL: []string{auth.ProfilesRead, auth.Usage}},
		{Hash: auth.Hash("indexed"), Name: "indexed-key", ACL: auth.All, Indexes: []string{"products"}},
		{Hash: auth.Hash("other"), Name: "other-key", ACL: []string{auth.Search}},
	} {
		s.must(s.stack.Backends.Config.PutKey(t.Context(), "shop", k))
	}
	page := s.login("reader").page(appPath)
	s.shows(page, "reader-key", "reads and explains profiles", "reads what the app used", "need a key with the permission <code>admin</code>", "affinity app key add shop --name console --acl admin")
	s.lacks(page, "other-key", "app-life", "Retention", "/1/app", "affinity settings", "imports events")
	page = s.login("indexed").page(appPath)
	s.shows(page, "indexed-key", "cannot be shown: This API key is restricted to indexes", "imports events")
	s.lacks(page, "other-key", "app-life")
	// A session has no permission that its key had not when it began, and none that the key has lost.
	p := s.login("reader")
	s.must(s.stack.Backends.Config.PutKey(t.Context(), "shop", config.Key{Hash: auth.Hash("reader"), Name: "reader-key", ACL: []string{auth.Admin, auth.Usage}}))
	for { // functions follow within the time that the configuration is cached
		page = p.page(appPath)
		if !strings.Contains(page, "reads and explains profiles") {
			break
		}
		if t.Context().Err() != nil {
			t.Fatal("the session keeps a permission that its key has lost")
		}
	}
	s.lacks(page, "other-key", "imports events")
	s.shows(page, "reads what the app used")
	if !slices.Contains(sections, appPath) {
		t.Error("the page is not tried in a browser")
	}
}
