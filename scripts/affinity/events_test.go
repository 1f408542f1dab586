package main

import (
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/local/stack"
)

func TestEventsCommands(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{RetentionDays: 90})
	run := func(args ...string) ran { return affinity(t, "", append(args, "--url", s.URL)...) }
	run("events", "refused").wants(t, cli.ExitOK, "no event was refused in the last ")
	run("events", "send", "ann", "--name", "Seen", "--filter", "color:Red", "--filter", "brand:Nike").wants(t, cli.ExitOK, "the event is accepted: `affinity profile ann`")
	must(t, s.Idle(t.Context()))
	run("export", "ann").wants(t, cli.ExitOK, `["color","Red",1]`, `["brand","Nike",1]`, `"eventName":"Seen"`)
	run("events", "send", "ann").wants(t, cli.ExitUsage, "give --object or --filter")
	run("events", "send", "ann", "--filter", "a:b", "--object", "c").wants(t, cli.ExitUsage, "not both")
	run("events", "send").wants(t, cli.ExitUsage, "USER is missing")
	run("events", "send", "ann", "--type", "look", "--object", "a").wants(t, cli.ExitFailed, "send an event of ann", "422 EventType must be")
	r := run("events", "refused")
	r.wants(t, cli.ExitOK, "REQUESTS  REASON\n", "EventType must be", `"eventType":"look"`)
	run("events", "refused", "--json").wants(t, cli.ExitOK, `{"refused":[{"at":`)

	run("user", "delete", "ann").wants(t, cli.ExitOK, "ann is deleted: nothing received up to ")
	run("export", "ann").wants(t, cli.ExitFailed, "404")
	run("user", "delete", "a,b").wants(t, cli.ExitFailed, "delete user a,b", "422")
}

func TestCatalogCommands(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{})
	run := func(in string, args ...string) ran { return affinity(t, in, append(args, "--url", s.URL)...) }
	objects := `{"objectID":"1","color":"Red"}` + "\n" + `{"color":"Blue"}` + "\n" + `{"objectID":"2"}` + "\n"
	run(objects, "catalog", "import", "--index", "shoes", "-").wants(t, command.ExitLines, "imported 2 objects into the index shoes", "stdin:2: objectID is missing")
	run("", "catalog", "import", file(t, "list.json", `[{"objectID":"3"},{"objectID":"4"}]`)).wants(t, cli.ExitOK, "imported 2 objects into the index products")
	run("", "catalog", "show", "1", "--index", "shoes").wants(t, cli.ExitOK, `"color": "Red"`)
	run("", "catalog", "show", "9").wants(t, cli.ExitFailed, "show object 9 of products", "404")
	run("", "import", "--objects", file(t, "objects.ndjson", `{"objectID":"5"}`)).wants(t, cli.ExitOK, "imported 1 object into the index products")
	run("", "catalog", "show", "5").wants(t, cli.ExitOK, `"objectID": "5"`)
	run("", "catalog", "list", "--index", "shoes").wants(t, cli.ExitOK, "1\n")
	run("", "catalog", "list", "--index", "shoes", "--filter", "color:Red", "--json").wants(t, cli.ExitOK, `{"objectIDs":["1"]}`)
	run("", "catalog", "list", "--limit", "1", "--json").wants(t, cli.ExitOK, `{"objectIDs":["3"],"cursor":"3"}`)
	run("", "catalog", "list", "--limit", "0").wants(t, cli.ExitUsage, "--limit 0")
	run("", "catalog", "list", "--filter", "color").wants(t, cli.ExitFailed, "filter must be a facet and a value")
	run("", "catalog", "import").wants(t, cli.ExitUsage, "FILE is missing")
	run("", "catalog", "import", "x", "--retry-for", "0s").wants(t, cli.ExitUsage, "--retry-for 0s")
}
