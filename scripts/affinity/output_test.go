package main

import (
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/stack"
)

func TestOutputOfCommands(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{RetentionDays: 90})
	run := func(args ...string) ran { return affinity(t, "", append(args, "--url", s.URL)...) }
	strategy := file(t, "strategy.json", `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":10}],"facetsScoring":[{"facetName":"color","score":10}],"personalizationImpact":50}`)
	run("strategy", "set", strategy).wants(t, cli.ExitOK)
	run("import", file(t, "events.ndjson", `{"eventType":"view","eventName":"Seen","userToken":"ann","index":"i","filters":["color:=1+1"]}`)).wants(t, cli.ExitOK)
	run("profile", "ann", "-o", "csv").wants(t, cli.ExitOK, "facet,operator,value,score\ncolor,:,=1+1,100\n")
	run("profile", "ann", "-o", "json").wants(t, cli.ExitOK, `{"userToken":"ann"`)
	run("recompute", "list", "-o", "csv").wants(t, cli.ExitOK, "id,state,strategyVersion,")
	run("schema", "status", "-o", "json").wants(t, cli.ExitOK, `{"read":"wide"`)
	run("audit", "-o", "csv").wants(t, cli.ExitOK)
	run("strategy", "get", "-o", "csv").wants(t, cli.ExitOK, "eventName,eventType,score\nSeen,view,10\n")
	run("backtest", "list", "-o", "json").wants(t, cli.ExitOK, `{"backtests":[]}`)
	run("profile", "nobody", "-o", "csv").wants(t, cli.ExitFailed, "404 No profile")
	run("profile", "ann", "-o", "xml").wants(t, cli.ExitUsage, "must be table, json, csv")
	run("dump", "-o", "csv").wants(t, cli.ExitUsage, "prints no data in that form")
}
