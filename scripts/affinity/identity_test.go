package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/stack"
)

func TestIdentityCommands(t *testing.T) {
	s := startEngine(t, stack.Options{})
	run := func(args ...string) ran {
		return affinity(t, "", append(args, "--url", s.URL, "--app", "demo", "--key", "demokey")...)
	}
	run("identity", "link", "a1", "ann").wants(t, cli.ExitFailed, "affinity app identity APP --mode collect")
	_, err := s.Backends.CachedConfig.SetIdentity(t.Context(), "demo", config.Identity{Mode: config.IdentityCollect, Lookback: time.Hour}, 0)
	must(t, err)
	run("identity", "link", "a1").wants(t, cli.ExitUsage, "want an anonymous token and the user")
	run("identity", "show", "ann").wants(t, cli.ExitOK, "ann: role none, 0 links")
	run("identity", "link", "a1", "ann", "--reason", "by mail").wants(t, cli.ExitOK, "a1: role anonymous, 1 links", "open", "strong", "0       request by mail")
	run("identity", "show", "ann").wants(t, cli.ExitOK, "ann: role known, 1 links", "a1 ")
	run("identity", "unlink", "a1", "ann").wants(t, cli.ExitOK, "unlinked; evidence received up to ")
	run("identity", "show", "a1").wants(t, cli.ExitOK, "unlinked")
	run("identity", "unlink", "a1", "bob").wants(t, cli.ExitFailed, "The tokens are not linked")
	run("identity", "refused").wants(t, cli.ExitOK, "no link was refused in the last 30 days")
	body := `{"events":[{"eventType":"view","eventName":"Viewed","index":"i","userToken":"undefined","authenticatedUserToken":"ann","objectIDs":["1"]}]}`
	rawPost(t, s, "/1/events", body)
	must(t, s.Idle(t.Context()))
	run("identity", "refused").wants(t, cli.ExitOK, "DAY", " value   1", "value   undefined  ann")
	run("identity", "refused", "--reason", "late").wants(t, cli.ExitOK, "no link was refused")
	run("identity", "refused", "--reason", "bad").wants(t, cli.ExitFailed, "reason must be one of")
}

// The operator switches links on in two steps.
func TestIdentityOfAnApp(t *testing.T) {
	app := onLocal(t, startEngine(t, stack.Options{}))
	app("create shop").wants(t, cli.ExitOK)
	app("identity shop").wants(t, cli.ExitOK, "app shop: tokens are not linked; begin with: affinity app identity shop --mode collect")
	app("identity shop --mode link").wants(t, cli.ExitFailed, `set the mode "collect" first`)
	app("identity shop --mode merge").wants(t, cli.ExitUsage, `--mode "merge": must be off, collect or link`)
	app("identity shop --mode collect --lookback 7d").wants(t, cli.ExitOK, "app shop: links are made since 20", "lookback 168h0m0s, evidence of the keys of servers")
	app("identity shop --mode link").wants(t, cli.ExitFailed, `processes may not know the mode "collect" yet, try again at 20`)
	app("identity shop --trust pages").wants(t, cli.ExitOK, "evidence of the keys of servers and pages")
	app("identity shop --serve person").wants(t, cli.ExitOK, "orders for anonymous tokens by those of the user who has signed in")
	app("identity shop --serve everybody").wants(t, cli.ExitUsage, `--serve "everybody": must be token or person`)
	app("identity nowhere").wants(t, cli.ExitFailed, "there is no such app")
}

// A preview says what would be linked, while links are off.
func TestIdentityPreview(t *testing.T) {
	s := startEngine(t, stack.Options{})
	run := func(args ...string) ran {
		return affinity(t, "", append(args, "--url", s.URL, "--app", "demo", "--key", "demokey")...)
	}
	run("identity", "preview").wants(t, cli.ExitOK, "no event has both tokens: nothing to link")
	line := `{"eventType":"view","eventName":"Viewed","userToken":"a1","authenticatedUserToken":"%s","timestamp":%d,"filters":["brand:Acme"]}`
	at := time.Now().UnixMilli()
	events := file(t, "events.ndjson", fmt.Sprintf(line, "ann", at-3000), fmt.Sprintf(line, "bob", at-2000), fmt.Sprintf(line, "nobody-1", at-90*24*3600*1000),
		fmt.Sprintf(line, "null", at-1000))
	run("import", events).wants(t, cli.ExitOK)
	run("identity", "preview").wants(t, cli.ExitOK, "3 events of 1 user in 30 days", "3 events of a userToken with another authenticatedUserToken: they link 1 token to 2 users",
		"2 users with 1 token", "1 link closed by the sign-in of another user", "1 event refused as value, such as a1 with null", "3 events of these tokens would count for the users")
	run("identity", "preview", "--days", "100", "--json").wants(t, cli.ExitOK, `"evidence": 4`, `"users": 3`)
	run("identity", "preview", "--days", "0").wants(t, cli.ExitUsage, "--days 0: must be from 1 to 365")
	run("identity", "preview", "list").wants(t, cli.ExitOK, "linkpreview-", "done", "100")
	run("identity", "preview", "cancel", "none").wants(t, cli.ExitFailed, `No preview "none"`)
	run("audit-log").wants(t, cli.ExitOK, "identity.preview", "100 days")
	run("identity", "show", "ann").wants(t, cli.ExitOK, "ann: role none, 0 links")
}
