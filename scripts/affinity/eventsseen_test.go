package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/stack"
)

func TestSeenAndRecentCommands(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{})
	run := func(args ...string) ran { return affinity(t, "", append(args, "--url", s.URL)...) }
	run("events", "seen").wants(t, cli.ExitOK, "no event arrived in the last 7 days")
	run("events", "tail").wants(t, cli.ExitOK, "no event arrived in the last 15 minutes")
	run("user", "recent").wants(t, cli.ExitOK, "no event arrived in the last 15 minutes")
	run("events", "send", "ann", "--name", "Seen", "--filter", "color:Red", "--filter", "brand:Nike").wants(t, cli.ExitOK)
	run("events", "send", "bob", "--name", "Seen", "--type", "click", "--object", "shoe-1").wants(t, cli.ExitOK)
	must(t, s.Idle(t.Context()))
	must(t, s.Backends.Usage.Flush(t.Context()))
	run("events", "seen", "--days", "1").wants(t, cli.ExitOK, "EVENTS  TYPE   NAME\n1       click  Seen\n1       view   Seen\n", "EVENTS  FACET\n1       brand\n1       color\n")
	run("events", "seen", "-o", "csv").wants(t, cli.ExitOK, "eventType,eventName,count\nclick,Seen,1\n")
	run("events", "seen", "--json").wants(t, cli.ExitOK, `"facets":[{"facet":"brand","count":1}`)
	run("events", "seen", "--days", "31").wants(t, cli.ExitUsage, "--days 31: must be from 1 to 30")

	tail := run("events", "tail")
	tail.wants(t, cli.ExitOK, "view        Seen  ann  products  color:Red, brand:Nike\n", "click       Seen  bob  products  shoe-1\n")
	if strings.Index(tail.out, "ann") > strings.Index(tail.out, "bob") {
		t.Errorf("the newest event is not the last one:\n%s", tail.out)
	}
	run("events", "tail", "--limit", "1", "-o", "csv").wants(t, cli.ExitOK, "receivedAt,userToken,", ",bob,click,Seen,products,")
	run("events", "tail", "--json").wants(t, cli.ExitOK, `"sampled":true}`)
	run("events", "tail", "--limit", "0").wants(t, cli.ExitUsage, "--limit 0: must be from 1 to 200")
	run("events", "tail", "--follow", "-o", "csv").wants(t, cli.ExitUsage, "--follow has no end")
	run("user", "recent").wants(t, cli.ExitOK, "USER  LAST EVENT            EVENTS\nbob ")
	run("user", "recent", "--limit", "1", "-o", "csv").wants(t, cli.ExitOK, "userToken,lastEventAt,events\nbob,")
	run("user", "recent", "--limit", "201").wants(t, cli.ExitUsage, "--limit 201: must be from 1 to 200")
}

// Tokens that name nobody are marked wherever users are listed by their events.
func TestTokensThatNameNobodyAreNamed(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{})
	run := func(args ...string) ran { return affinity(t, "", append(args, "--url", s.URL)...) }
	run("events", "send", "ann", "--filter", "color:Red").wants(t, cli.ExitOK)
	run("events", "send", "undefined", "--name", "Seen", "--filter", "color:Red").wants(t, cli.ExitOK)
	run("events", "send", "00000000-0000-0000-0000-000000000000", "--name", "Seen", "--filter", "color:Red").wants(t, cli.ExitOK)
	run("events", "send", "undefined", "--name", "Seen", "--filter", "color:Blue").wants(t, cli.ExitOK)
	must(t, s.Idle(t.Context()))
	must(t, s.Backends.Usage.Flush(t.Context()))
	run("events", "seen").wants(t, cli.ExitOK, "EVENTS  TOKEN THAT NAMES NOBODY\n2       undefined\n1       00000000-0000-0000-0000-000000000000\n",
		"let it send no event then", "affinity user delete -- undefined removes")
	run("events", "seen", "--json").wants(t, cli.ExitOK, `"nobody":[{"userToken":"undefined","count":2},`)
	affinity(t, "", "user", "delete", "--url", s.URL, "--", "undefined").wants(t, cli.ExitOK)
}

// A command that follows prints each event once, those that come later too, and ends well
// when it is interrupted.
func TestFollowEvents(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{})
	send := func(user string) {
		t.Helper()
		affinity(t, "", "events", "send", user, "--filter", "a:b", "--url", s.URL).wants(t, cli.ExitOK)
	}
	send("ann")
	must(t, s.Idle(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen output
	lines := writer(func(p []byte) (int, error) {
		n, err := seen.Write(p)
		if strings.Contains(string(p), `"ann"`) {
			send("bob")
		}
		if strings.Contains(string(p), `"bob"`) {
			cancel()
		}
		return n, err
	})
	affinityWith(t, ctx, "", func(tl *program) { tl.Out = lines }, "events", "tail", "--follow", "--json", "--url", s.URL).wants(t, cli.ExitOK)
	got := strings.Split(strings.TrimSpace(seen.String()), "\n")
	if len(got) != 2 || !strings.Contains(got[0], `"userToken":"ann"`) || !strings.Contains(got[1], `"userToken":"bob"`) {
		t.Errorf("printed %q, want a line for each event", got)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

var _ io.Writer = writer(nil)
