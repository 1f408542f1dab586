package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// A key that the command makes orders objects for its user, and for no other one.
func TestSecuredKeyCommand(t *testing.T) {
	s := startEngine(t, stack.Options{RetentionDays: 90})
	made := affinity(t, "", "app", "key", "secured", "--key", "demokey", "--user", "ann", "--valid-for", "1h", "--indexes", "products,news_*", "--sources", "127.0.0.0/8,::1")
	made.wants(t, cli.ExitOK)
	c, err := client.New(client.Config{URL: s.URL, App: "demo", Key: strings.TrimSpace(made.out), Retry: client.NoRetry})
	must(t, err)
	for user, index := range map[string]string{"ann": "products", "ben": "products", "ann ": "shops"} {
		_, err := c.Rank(t.Context(), api.RankRequest{UserToken: strings.TrimSpace(user), Index: index, ObjectIDs: []string{"1"}})
		if refused, allowed := err != nil, user == "ann"; refused == allowed {
			t.Errorf("an order of %s for %s: %v", index, user, err)
		}
	}
}

func TestSecuredKeyCommandRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"":                                  "nothing restricts the key",
		"--user a\u00a0b":                   "--user \"a\\u00a0b\": a user token has",
		"--user a --valid-for -1h":          "must be positive",
		"--user a --valid-until 2020-01-01": "has passed",
		"--user a --valid-for 1h --valid-until 2120-01-01":              "give one of them",
		"--user a --sources 300.0.0.1":                                  "neither an address nor a network",
		"--user a --indexes " + strings.Repeat("products*,", 400) + "x": "an engine takes 4096",
		"shop --user a": "",
	} {
		affinity(t, "", append([]string{"app", "key", "secured", "--key", "k"}, strings.FieldsFunc(args, func(r rune) bool { return r == ' ' })...)...).wants(t, cli.ExitUsage, want)
	}
}

// A search key that asks for an order or a boost learns what would get it.
func TestRefusalNamesTheWayOut(t *testing.T) {
	s := startEngine(t, stack.Options{RetentionDays: 90, Operator: "operator-of-this-test"})
	t.Setenv("AFFINITY_OPERATOR", "operator-of-this-test")
	added := affinity(t, "", "app", "key", "add", "demo", "--name", "page", "--acl", "search", "--url", s.URL)
	added.wants(t, cli.ExitOK)
	at := []string{"--url", s.URL, "--key", strings.TrimSpace(added.out)}
	const exact = "403 Method not allowed with this API key: "
	affinity(t, "", append([]string{"rank", "--user", "ann", "--index", "products", "1"}, at...)...).
		wants(t, cli.ExitFailed, exact+"Let keys with the permission search rank with `affinity app ranking demo --browser on`, or give each user a secured key")
	affinity(t, "", append([]string{"boosts", "ann", "--engine", "typesense"}, at...)...).
		wants(t, cli.ExitFailed, exact+"A page needs a secured key of the user")
	affinity(t, "", append([]string{"profile", "ann"}, at...)...).wants(t, cli.ExitFailed, strings.TrimSuffix(exact, ": ")+"\n")

	added = affinity(t, "", "app", "key", "add", "demo", "--name", "other", "--acl", "search", "--referers", "https://shop.example/*", "--url", s.URL)
	added.wants(t, cli.ExitOK)
	for referer, want := range map[string]string{
		"":                       "The request names no page, neither as Referer nor as Origin",
		"http://localhost:18410": `The request comes from \"http://localhost:18410\", which no referer of the key permits`,
		"http://h/" + strings.Repeat("\u200b<script>", 100): `The request comes from \"http://h/\\u200b\u003cscript\u003e`,
	} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/1/events", strings.NewReader(`{}`))
		must(t, err)
		r.Header = http.Header{"X-Algolia-Application-Id": {"demo"}, "X-Algolia-Api-Key": {strings.TrimSpace(added.out)}}
		if referer != "" {
			r.Header.Set("Referer", referer)
		}
		res, err := http.DefaultClient.Do(r)
		must(t, err)
		body := make([]byte, 2000)
		n, _ := res.Body.Read(body)
		must(t, res.Body.Close())
		if got := string(body[:n]); !strings.HasPrefix(got, `{"status":403,"message":"Referer not allowed with this API key","hint":"`+want) || n > 1500 {
			t.Errorf("a request from %.40q: %s", referer, got)
		}
	}
}
