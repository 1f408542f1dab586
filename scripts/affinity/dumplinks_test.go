package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// linking starts an engine whose app links tokens, also by keys of pages.
func linking(t *testing.T) *stack.Stack {
	t.Helper()
	s := startEngine(t, stack.Options{RetentionDays: 90})
	for _, mode := range []config.IdentityMode{config.IdentityCollect, config.IdentityLink} {
		_, err := s.Backends.CachedConfig.SetIdentity(t.Context(), "demo", config.Identity{Mode: mode, Lookback: 24 * time.Hour, TrustPages: true}, 0)
		must(t, err)
	}
	return s
}

// fillLinks gives an app a link of each kind.
func fillLinks(t *testing.T, s *stack.Stack) {
	t.Helper()
	ctx, c := t.Context(), clientOf(t, s.URL)
	must(t, c.Strategies().SetJSON(ctx, []byte(`{"eventsScoring":[{"eventName":"Bought","eventType":"conversion","score":50}],"facetsScoring":[{"facetName":"color","score":70}],"personalizationImpact":50}`), client.SetOptions{}))
	begin := time.Now().Add(-2 * time.Hour)
	line := func(token, known string, minute int) string {
		named := ""
		if known != "" {
			named = `"authenticatedUserToken":"` + known + `",`
		}
		return fmt.Sprintf(`{"eventType":"conversion","eventName":"Bought","index":"i","userToken":%q,%s"filters":["color:%s"],"timestamp":%d}`,
			token, named, token+known, begin.Add(time.Duration(minute)*time.Minute).UnixMilli())
	}
	var lines bytes.Buffer
	for _, l := range []string{
		line("open", "", 1), line("open", "ann", 2), line("ann", "", 3), line("two", "", 1), line("two", "ann", 2), line("two", "bob", 4), line("two", "", 5),
		line("undone", "", 1), line("undone", "ann", 2), line("dead", "gone", 3), line("dead", "", 4), line("weak", "", 1), line("phone", "out", 1),
	} {
		fmt.Fprintln(&lines, l)
	}
	_, err := c.Events().Import(ctx, "", lines.Bytes())
	must(t, err)
	must(t, s.Backends.Config.PutKey(ctx, "demo", config.Key{Hash: auth.Hash("pagekey"), ACL: []string{auth.Search}}))
	page, err := client.New(client.Config{URL: s.URL, App: "demo", Key: "pagekey"})
	must(t, err)
	var weak api.Event
	must(t, json.Unmarshal([]byte(line("weak", "ann", 2)), &weak))
	must(t, page.Events().Send(ctx, weak))
	settle(t, s)
	_, err = c.Profiles().Link(ctx, api.LinkRequest{UserToken: "asked", AuthenticatedUserToken: "bob", Reason: "by <mail>"})
	must(t, err)
	_, err = c.Profiles().Unlink(ctx, "undone", "ann")
	must(t, err)
	_, err = c.Profiles().Delete(ctx, "gone")
	must(t, err)
	_, err = c.Profiles().OptOut(ctx, "out", api.OptOutRequest{})
	must(t, err)
	settle(t, s)
}

var linkedTokens = []string{"open", "two", "undone", "dead", "weak", "phone", "asked", "ann", "bob", "gone", "out"}

// sameLinks checks that two apps have the same links, and their users the same profiles.
func sameLinks(t *testing.T, source, target *client.Client) {
	t.Helper()
	for _, token := range linkedTokens {
		x, err := source.Profiles().Identity(t.Context(), token)
		must(t, err)
		y, err := target.Profiles().Identity(t.Context(), token)
		must(t, err)
		if diff := cmp.Diff(x, y); diff != "" {
			t.Errorf("links of %s (-source +restored):\n%s", token, diff)
		}
		p, errP := source.Profiles().Get(t.Context(), token, api.ProfileQuery{})
		q, errQ := target.Profiles().Get(t.Context(), token, api.ProfileQuery{})
		if (errP == nil) != (errQ == nil) {
			t.Errorf("profile of %s: %v, restored %v", token, errP, errQ)
		}
		if diff := cmp.Diff(p.Affinities, q.Affinities); diff != "" || p.Total != q.Total {
			t.Errorf("profile of %s (-source +restored):\n%s", token, diff)
		}
	}
}

// A restored app has the links of the app that was dumped, of every kind, and its users have the same profiles.
func TestDumpAndRestoreOfLinks(t *testing.T) {
	t.Parallel()
	from, to := linking(t), linking(t)
	source, target := clientOf(t, from.URL), clientOf(t, to.URL)
	fillLinks(t, from)
	folder := t.TempDir()
	first, second := filepath.Join(folder, "first.ndjson"), filepath.Join(folder, "second.ndjson")
	affinity(t, "", "dump", "--url", from.URL, "--out", first).wants(t, cli.ExitOK)
	text, err := os.ReadFile(first)
	must(t, err)
	for _, want := range []string{`"identity":{"mode":"link","lookback":"1d","trust":"pages","serve":"token"}`, `"state":"dead"`, `"state":"void"`,
		`"strength":"weak"`, `"by":"request","evidence":"by <mail>"`, `"optedOutBy":"out"`, `{"exportedLinks":{"userToken":"ann","role":"known","tokens":[`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the dump lacks %s", want)
		}
	}
	for range 2 {
		affinity(t, "", "restore", "--url", to.URL, first).wants(t, cli.ExitOK, "restored the links of 11 tokens", "had links in the mode link, with a lookback of 1d")
		settle(t, to)
		sameLinks(t, source, target)
		affinity(t, "", "dump", "--url", to.URL, "--out", second).wants(t, cli.ExitOK)
		if diff := cmp.Diff(dumpOf(t, first), dumpOf(t, second)); diff != "" {
			t.Errorf("dumped again (-source +restored):\n%s", diff)
		}
		must(t, os.Remove(second))
	}
	for _, c := range []*client.Client{source, target} {
		_, err := c.Profiles().Unlink(t.Context(), "open", "ann")
		must(t, err)
		_, err = c.Profiles().OptIn(t.Context(), "out")
		must(t, err)
	}
	ann, err := target.Profiles().Get(t.Context(), "ann", api.ProfileQuery{})
	must(t, err)
	if strings.Contains(fmt.Sprint(ann.Affinities), "open") || !strings.Contains(fmt.Sprint(ann.Affinities), "two") {
		t.Errorf("ann after an unlink: %v", ann.Affinities)
	}
}

// An app that links no tokens keeps the links of a dump until its operator switches them on.
func TestRestoreOfLinksBeforeTheyAreOn(t *testing.T) {
	t.Parallel()
	from, to := linking(t), startEngine(t, stack.Options{RetentionDays: 90})
	fillLinks(t, from)
	path := filepath.Join(t.TempDir(), "dump.ndjson")
	affinity(t, "", "dump", "--url", from.URL, "--out", path).wants(t, cli.ExitOK)
	affinity(t, "", "restore", "--url", to.URL, path).wants(t, cli.ExitOK, "restored the links of 11 tokens", "affinity app identity")
	target := clientOf(t, to.URL)
	ann, err := target.Profiles().Get(t.Context(), "ann", api.ProfileQuery{})
	must(t, err)
	if ann.Total != 1 {
		t.Errorf("ann without links: %v", ann.Affinities)
	}
	for _, mode := range []config.IdentityMode{config.IdentityCollect, config.IdentityLink} {
		_, err := to.Backends.CachedConfig.SetIdentity(t.Context(), "demo", config.Identity{Mode: mode, Lookback: 24 * time.Hour}, 0)
		must(t, err)
	}
	settle(t, to)
	sameLinks(t, clientOf(t, from.URL), target)
}

// A restore refuses the lines of tokens whose role is another one, and says which links it leaves out.
func TestRestoreOfLinksThatContradict(t *testing.T) {
	t.Parallel()
	from, to := linking(t), linking(t)
	fillLinks(t, from)
	path := filepath.Join(t.TempDir(), "dump.ndjson")
	affinity(t, "", "dump", "--url", from.URL, "--out", path).wants(t, cli.ExitOK)
	target := clientOf(t, to.URL)
	for token, known := range map[string]string{"bob": "someone", "x": "weak", "open": "other"} {
		_, err := target.Profiles().Link(t.Context(), api.LinkRequest{UserToken: token, AuthenticatedUserToken: known})
		must(t, err)
	}
	affinity(t, "", "restore", "--url", to.URL, path).wants(t, command.ExitLines, "restored the links of 9 tokens", "left out 3 links, which contradict",
		"weak is an authenticatedUserToken here", "bob is an anonymous userToken here")
	bob, err := target.Profiles().Identity(t.Context(), "bob")
	must(t, err)
	if bob.Role != "anonymous" || len(bob.Links) != 1 {
		t.Errorf("bob: %+v", bob)
	}
}
