package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

func TestSegmentCommands(t *testing.T) {
	const (
		build   = `{"id":"manual-1","state":%q,"shards":{"total":1,"done":0,"failed":0},"users":%d,"startedAt":"2026-11-21T10:00:00.000Z","finishedAt":null,"trigger":"manual","plannedUsers":9,"visitedUsers":0%s}`
		list    = `{"segments":[],"lists":null,"builds":[%s]}`
		segment = `{"name":"nike","where":{"filter":"brand:Nike","above":5},"setAt":"2026-11-21T10:00:00.000Z","sizes":[{"day":"2026-11-22","users":41},{"day":"2026-11-23","users":"fewer than 20"}]}`
		page    = `{"total":%s,"asOf":"2026-11-21T10:00:00.000Z","users":[{"userToken":%q,"score":7.25}]%s}`
		bars    = `{"users":110,"mean":4.5,"quantiles":{"p10":1,"p50":4,"p90":8.25,"p99":9},"buckets":[{"from":1,"to":2,"users":100},{"from":2,"to":4,"users":10}],"asOf":"2026-11-21T10:00:00.000Z"}`
		export  = `{"id":"export-1","segment":"nike","state":%q,"users":%s,"asOf":"2026-11-21T10:00:00.000Z","keptUntil":null,"startedAt":"2026-11-21T10:00:00.000Z","finishedAt":null}`
		query   = `POST /1/segments/query {"where":{"filter":"brand:Nike"},"limit":`
	)
	where := []string{"--where", "brand:Nike"}
	successor := func(state string) string {
		return strings.Replace(fmt.Sprintf(build, state, 9, ""), "manual-1", "recompute-1", 1)
	}
	for name, c := range map[string]struct {
		args     []string
		answers  []string
		code     int
		wants    []string
		requests []string // none: not looked at
	}{
		"a page": {append([]string{"query"}, where...), []string{fmt.Sprintf(page, "2", "ann", `,"cursor":"next"`)}, cli.ExitOK,
			[]string{"2 users as of 2026-11-21T10:00:00Z\n", "ann\t7.25\n", "there are more: --all, or --cursor next"}, []string{query + `100}`}},
		"all pages": {append([]string{"query", "--all"}, where...), []string{fmt.Sprintf(page, "2", "ann", `,"cursor":"next"`), fmt.Sprintf(page, "2", "bob", "")},
			cli.ExitOK, []string{"ann\t7.25\nbob\t7.25\n"}, []string{query + `100}`, query + `100,"cursor":"next"}`}},
		"a hidden count": {append([]string{"query", "--count"}, where...), []string{`{"total":"fewer than 20","asOf":"2026-11-21T10:00:00.000Z","users":[]}`}, cli.ExitOK,
			[]string{"fewer than 20 users as of"}, []string{query + `0}`}},
		"several filters": {[]string{"query", "--where", "a:b > 2 @30", "--where", "c:d", "--without", "e:f"}, []string{fmt.Sprintf(page, "1", "ann", "")}, cli.ExitOK, nil,
			[]string{`POST /1/segments/query {"where":{"and":[{"filter":"a:b","halfLife":30,"above":2},{"filter":"c:d"},{"not":{"filter":"e:f"}}]},"limit":100}`}},
		"not built": {append([]string{"query"}, where...), []string{"503"}, cli.ExitFailed, []string{"query users", "503 said the engine"}, nil},
		"histogram": {[]string{"histogram", "brand:Nike", "--half-life", "30"}, []string{bars}, cli.ExitOK,
			[]string{"brand:Nike: 110 users", "mean 4.500, p10 1, p50 4, p90 8.250, p99 9", "1 to 2 100 " + strings.Repeat("█", 40) + "\n", "2 to 4  10 ████\n"},
			[]string{"GET /1/segments/histogram?facet=brand&halfLife=30&value=Nike"}},
		"a hidden histogram": {[]string{"histogram", "brand:Nike"}, []string{`{"users":"fewer than 20","asOf":"2026-11-21T10:00:00.000Z"}`}, cli.ExitOK,
			[]string{"brand:Nike: fewer than 20 users"}, nil},
		"save": {append([]string{"save", "nike"}, where...), []string{segment}, cli.ExitOK, []string{"segment nike, set 2026-11-21T10:00:00Z", "2026-11-22  41\n2026-11-23  fewer than 20\n"},
			[]string{`PUT /1/segments/nike?create=true {"where":{"filter":"brand:Nike"}}`}},
		"replace": {append([]string{"save", "nike", "--replace"}, where...), []string{segment}, cli.ExitOK, nil,
			[]string{`PUT /1/segments/nike {"where":{"filter":"brand:Nike"}}`}},
		"a name in use": {append([]string{"save", "nike"}, where...), []string{"409"}, cli.ExitFailed, []string{"save segment nike", "409 said the engine"}, nil},
		"show":          {[]string{"show", "nike"}, []string{segment}, cli.ExitOK, []string{`{"filter":"brand:Nike","above":5}`}, []string{"GET /1/segments/nike"}},
		"list": {[]string{"list"}, []string{`{"segments":[` + segment + `],"lists":{"builtAt":"2026-11-21T10:00:00.000Z","users":9},"builds":[]}`}, cli.ExitOK,
			[]string{"SEGMENT  USERS          DAY         SET\nnike     fewer than 20  2026-11-23  2026-11-21T10:00:00Z\n", "lists of 9 users, built"}, nil},
		"an empty list": {[]string{"list"}, []string{fmt.Sprintf(list, "")}, cli.ExitOK, []string{"no saved segments", "not built yet: `affinity segment refresh`"}, nil},
		"delete":        {[]string{"delete", "nike"}, []string{`{"deletedAt":"2026-11-21T10:00:00.000Z"}`}, cli.ExitOK, []string{"segment nike is deleted"}, []string{"DELETE /1/segments/nike"}},
		"refresh": {[]string{"refresh"}, []string{fmt.Sprintf(build, "planning", 0, ""), "503", fmt.Sprintf(list, fmt.Sprintf(build, "running", 4, "")), fmt.Sprintf(list, fmt.Sprintf(build, "done", 9, ""))},
			cli.ExitOK, []string{"build manual-1 is under way", "lists of 9 users"}, nil},
		"a failed refresh": {[]string{"refresh"}, []string{fmt.Sprintf(build, "planning", 0, ""), fmt.Sprintf(list, fmt.Sprintf(build, "failed", 4, `,"error":"no disk"`))},
			cli.ExitFailed, []string{"build manual-1 failed: no disk"}, nil},
		"a superseded refresh": {[]string{"refresh"}, []string{fmt.Sprintf(build, "planning", 0, ""),
			fmt.Sprintf(list, successor("running")+","+fmt.Sprintf(build, "superseded", 0, `,"error":"segments build recompute-1 takes its place"`)),
			fmt.Sprintf(list, successor("done")+","+fmt.Sprintf(build, "superseded", 0, ""))},
			cli.ExitOK, []string{"build recompute-1 takes its place\n", "lists of 9 users"}, nil},
		"a superseded refresh whose successor fails": {[]string{"refresh"}, []string{fmt.Sprintf(build, "planning", 0, ""),
			fmt.Sprintf(list, successor("failed")+","+fmt.Sprintf(build, "superseded", 0, ""))},
			cli.ExitFailed, []string{"build recompute-1 failed"}, nil},
		"a superseded refresh whose successor is not listed": {[]string{"refresh"}, []string{fmt.Sprintf(build, "planning", 0, ""),
			fmt.Sprintf(list, fmt.Sprintf(build, "superseded", 0, `,"error":"segments build x takes its place"`))},
			cli.ExitFailed, []string{"build manual-1 was superseded: segments build x takes its place"}, nil},
		"export": {[]string{"export", "nike"}, []string{fmt.Sprintf(export, "planning", "null"), fmt.Sprintf(export, "done", "1"), "{\"userToken\":\"ann\",\"score\":7}\n"}, cli.ExitOK,
			[]string{"{\"userToken\":\"ann\",\"score\":7}\n", "complete: 1 user as of"}, []string{"POST /1/segments/nike/export", "GET /1/segments/export/export-1", "GET /1/segments/export/export-1/file"}},
		"an export that is cut off": {[]string{"export", "nike"}, []string{fmt.Sprintf(export, "done", "2"), fmt.Sprintf(export, "done", "2"), "{\"userToken\":\"ann\",\"score\":7}\n"},
			cli.ExitFailed, []string{"cut off", "1 of 2 users arrived"}, nil},
		"no condition":         {[]string{"query"}, nil, cli.ExitUsage, []string{"--where is required"}, nil},
		"only negative":        {[]string{"query", "--without", "a:b"}, nil, cli.ExitUsage, []string{"--where is required"}, nil},
		"a filter of no form":  {[]string{"query", "--where", "Nike"}, nil, cli.ExitUsage, []string{`--where "Nike": must have the form facet:value`}, nil},
		"a file and a filter":  {[]string{"query", "x.json", "--where", "a:b"}, nil, cli.ExitUsage, []string{"not both"}, nil},
		"a limit":              {append([]string{"query", "--limit", "1001"}, where...), nil, cli.ExitUsage, []string{"--limit 1001: must be from 1 to 1000"}, nil},
		"a histogram of what":  {[]string{"histogram", "Nike"}, nil, cli.ExitUsage, []string{"must have the form facet:value"}, nil},
		"an unknown half-life": {[]string{"histogram", "a:b", "--half-life", "x"}, nil, cli.ExitUsage, []string{"--half-life must be a number of days"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			jobTest{"", c.answers, c.code, c.wants, c.requests}.run(t, "", append([]string{"segment"}, c.args...)...)
		})
	}
}

// A file holds a condition, or the body of a query.
func TestConditionOfAFile(t *testing.T) {
	for _, text := range []string{`{"or":[{"filter":"a:b"},{"not":{"filter":"c:d","above":2.5}}]}`, `{"where":{"or":[{"filter":"a:b"},{"not":{"filter":"c:d","above":2.5}}]}}`} {
		url, requests := recomputeEngine(t, "", `{"total":0,"asOf":"2026-11-21T10:00:00.000Z","users":[]}`)
		affinity(t, text, "segment", "query", "-", "--url", url).wants(t, cli.ExitOK, "0 users")
		if want := []string{`POST /1/segments/query {"where":{"or":[{"filter":"a:b"},{"not":{"filter":"c:d","above":2.5}}]},"limit":100}`}; !cmp.Equal(*requests, want) {
			t.Errorf("requests %q, want %q", *requests, want)
		}
	}
	affinity(t, `{"filter":"a:b","over":3}`, "segment", "query", "-").wants(t, cli.ExitFailed, "- is not a condition", "over")
}

func TestValuesCommand(t *testing.T) {
	url, requests := recomputeEngine(t, "", `{"facet":"brand","values":[{"value":"Acme","users":120},{"value":"Zeta","users":"fewer than 20"}],"total":7,"asOf":"2026-11-21T10:00:00.000Z"}`)
	affinity(t, "", "values", "--facet", "brand", "--limit", "2", "--url", url).wants(t, cli.ExitOK,
		"VALUE  USERS\nAcme   120\nZeta   fewer than 20\n2 of 7 values, as of 2026-11-21T10:00:00Z\n")
	if want := []string{"GET /1/values?facet=brand&limit=2&sample=300"}; !cmp.Equal(*requests, want) {
		t.Errorf("requests %q, want %q", *requests, want)
	}
	sampled := `{"facet":"brand","values":[{"value":"Acme","users":120,"events":340},{"value":"Zeta","users":"fewer than 20"}],"total":2,"asOf":"2026-11-21T10:00:00.000Z",` +
		`"sample":{"users":300,"all":%v}}`
	url, _ = recomputeEngine(t, "", fmt.Sprintf(sampled, false))
	affinity(t, "", "values", "--facet", "brand", "--url", url).wants(t, cli.ExitOK,
		"VALUE  USERS          EVENTS\nAcme   120            about 340\nZeta   fewer than 20  -\n2 of 2 values", "events are estimated from 300 users at random\n")
	url, requests = recomputeEngine(t, "", fmt.Sprintf(sampled, true))
	affinity(t, "", "values", "--facet", "brand", "--sample", "0", "--url", url).wants(t, cli.ExitOK, "Acme   120            340\n")
	if want := []string{"GET /1/values?facet=brand&limit=100"}; !cmp.Equal(*requests, want) {
		t.Errorf("%q, want %q", *requests, want)
	}
	affinity(t, "", "values").wants(t, cli.ExitUsage, "--facet is required")
	affinity(t, "", "values", "--facet", "brand", "--sample", "1001").wants(t, cli.ExitUsage, "--sample 1001: must be from 0 to 1000")
	affinity(t, "", "values", "--facet", "brand", "--limit", "0").wants(t, cli.ExitUsage, "--limit 0: must be from 1 to 1000")
}
