package export_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/intake/export"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// A line says all of the row of a token, but for what a restore makes itself.
func TestLinksOfLines(t *testing.T) {
	now := time.UnixMilli(1_795_255_200_000)
	at := now.UnixMilli()
	tombstone := affinity.Tombstone{DeletedUntil: at - 50, ReceivedUntil: at - 40}
	anonymous := links.Cell{Role: links.Anonymous, OutBy: "out", Entries: []links.Entry{
		{Known: "k", Since: 0, To: at - 900, Was: links.Open, From: at - 950, At: at - 940, By: "q3Zt0_8mKfA", Key: "5b1f0a9c77de", Weak: true, Limited: true},
		{Known: "k", Since: at - 900, To: at - 800, Was: links.Open, From: at - 850, At: at - 840, Source: links.FromCall, By: "m", State: links.Void,
			Until: affinity.Tombstone{DeletedUntil: at - 10, ReceivedUntil: at - 10}},
		{Known: "l", Since: at - 800, To: at - 700, Was: at - 600, From: at - 750, At: at - 740, Source: links.FromRequest, By: "by <mail>", State: links.Dead, Until: tombstone},
		{Known: "m", Since: at - 600, To: links.Open, Was: links.Open, From: at - 550, At: at - 540, State: links.Dead, Until: tombstone},
		{Known: "out", Since: at - 500, To: links.Open, Was: links.Open, From: at - 450, At: at - 440},
	}}
	known := links.Cell{Role: links.Known, List: []links.Listed{{Token: "a", At: at - 5}, {Token: "b", At: at - 9, Shut: at - 7}}}
	for user, want := range map[string]links.Copy{"anonymous": {Cell: anonymous, Deleted: tombstone}, "k": {Cell: known}} {
		row := store.User{Links: want.Append(nil), DeletedUntil: want.Deleted.DeletedUntil, ReceivedUntil: want.Deleted.ReceivedUntil}
		line, ok, err := export.NewLinks(user, row)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		text, err := export.Encode(line)
		if err != nil {
			t.Fatal(err)
		}
		parsed, own, err := export.Parse(text)
		if err != nil || !own || parsed.Links == nil {
			t.Fatal(own, err)
		}
		got, err := export.Links(parsed.Links, now)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v, (-row +restored):\n%s\n%s", err, diff, text)
		}
	}
	if _, ok, err := export.NewLinks("u", store.User{}); ok || err != nil {
		t.Error("a row without links has a line:", ok, err)
	}
	if _, _, err := export.NewLinks("u", store.User{Links: []byte("?")}); err == nil {
		t.Error("damaged links have a line")
	}
}

func TestBadLinesOfLinks(t *testing.T) {
	now := time.UnixMilli(1_795_255_200_000)
	const entry = `{"authenticatedUserToken":"ann","state":"live","since":"2026-10-23T10:00:00.000Z","from":"2026-11-20T10:00:00.000Z",` +
		`"receivedAt":"2026-11-20T10:00:00.120Z","strength":"strong","by":"event","evidence":"yPk6o_-AeS8"}`
	const good = `{"exportedLinks":{"userToken":"a","role":"anonymous","entries":[` + entry + `]}}`
	bad := map[string]string{
		`"userToken":"a"`: `"userToken":"a,b"`, `"role":"anonymous"`: `"role":"known"`, `"anonymous"`: `"none"`, `"live"`: `"open"`, `"event"`: `"mail"`,
		`"strong"`: `"sure"`, `"ann"`: `"a"`, `"authenticatedUserToken":"ann"`: `"authenticatedUserToken":"undefined"`,
		`"from":"2026-11-20`: `"from":"2036-11-20`, `"receivedAt":"2026`: `"receivedAt":"1926`, `"since":"2026`: `"to":"2026-10-22T10:00:00.000Z","since":"2026`,
		`"state":"live"`: `"state":"void"`, `"yPk6o_-AeS8"`: `"` + strings.Repeat("x", 1001) + `"`, `[` + entry: `[` + strings.Repeat(entry+",", 20) + entry,
		`"role"`: `"optedOutBy":"a","role"`, `"userToken"`: `"deletedUntil":"2126-11-20T10:00:00.000Z","userToken"`, `"entries"`: `"tokens":[{"userToken":"b","at":"2026-10-22T10:00:00.000Z"}],"entries"`,
		good: `{"exportedLinks":{"userToken":"a","role":"known","tokens":[{"userToken":"b","at":"2026-10-22T10:00:00.000Z"},{"userToken":"b","at":"2026-10-22T10:00:00.000Z"}]}}`,
	}
	check := func(text string) error {
		t.Helper()
		l, _, err := export.Parse([]byte(text))
		if err != nil || l.Links == nil {
			t.Fatal(text, err)
		}
		_, err = export.Links(l.Links, now.Add(event.MaxAhead))
		return err
	}
	if err := check(good); err != nil {
		t.Error(err)
	}
	for part, by := range bad {
		if !strings.Contains(good, part) {
			t.Errorf("the line has no %s", part)
		}
		if err := check(strings.Replace(good, part, by, 1)); err == nil {
			t.Errorf("%s in place of %s is restored", by, part)
		}
	}
}
