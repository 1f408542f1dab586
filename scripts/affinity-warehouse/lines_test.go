package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/intake/warehouse"
	"github.com/affinityengine/affinity/shared/local/must"
)

// The lines of a dump of one app, in which eve is deleted after her profile and events were read, and bob has opted
// out of conversions. dan was deleted before, and has come back.
const (
	head    = `{"exportedApp":{"app":"shop","asOf":"2026-11-21T10:00:00.000Z","retentionDays":90,"segments":true,"browserRanking":false,"consistency":"eventual"}}` + "\n"
	segment = `{"exportedSegment":{"name":"reds","where":{"filter":"color:Red","above":5}}}` + "\n"
	end     = `{"exportEnd":{"events":6,"faults":0}}` + "\n"
)

func profileLine(user, asOf string) string {
	return fmt.Sprintf(`{"exportedProfile":{"userToken":%q,"lastEventAt":"2026-11-21T09:00:00.000Z","asOf":%q,"strategyVersion":2,"source":"stored","total":1,"affinities":[{"facet":"color","operator":":","value":"Red","score":2.5}]}}`+"\n", user, asOf)
}

func eventLine(user, id, kind string, at int64) string {
	return fmt.Sprintf(`{"exportedEvent":{"time":%d,"id":%q,"receivedAt":"2026-11-21T09:00:00.000Z","index":"i","filters":[["color","Red",1]],"event":{"eventType":%q,"eventName":"Seen","userToken":%q,"index":"i","filters":["color:Red"]}}}`+"\n", at, id, kind, user)
}

func deletionLine(user, until, types string) string {
	return fmt.Sprintf(`{"exportedDeletion":{"userToken":%q,"deletedUntil":%q,"receivedUntil":%[2]q%s}}`+"\n", user, until, types)
}

const nine = 1_795_251_600_000 // 2026-11-21T09:00:00Z

func dump() string {
	return profileLine("ann", "2026-11-21T09:59:00.000Z") + profileLine("bob", "2026-11-21T09:59:00.000Z") +
		profileLine("dan", "2026-11-21T09:59:00.000Z") + profileLine("eve", "2026-11-21T09:59:00.000Z") +
		head + segment + deletionLine("dan", "2026-11-20T10:00:00.000Z", "") +
		eventLine("ann", "aaaaaaaaaaa", "view", nine) + eventLine("bob", "bbbbbbbbbbb", "view", nine) +
		eventLine("bob", "bbbbbbbbbbc", "conversion", nine) + eventLine("dan", "ddddddddddd", "view", nine) +
		eventLine("eve", "eeeeeeeeeee", "view", nine) + eventLine("eve", "eeeeeeeeeef", "view", nine) +
		deletionLine("bob", "2026-11-20T10:00:00.000Z", `,"optedOut":["conversion"]`) +
		deletionLine("dan", "2026-11-20T10:00:00.000Z", "") + deletionLine("eve", "2026-11-21T10:01:00.000Z", "") + end
}

func exported(t *testing.T, lines string) (string, summary, error) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "shop")
	done, err := export("shop", folder, bufio.NewReader(strings.NewReader(lines)))
	return folder, done, err
}

// usersOf returns the users of a table, in the order of its files.
func usersOf(t *testing.T, folder string) (events, profiles []string) {
	t.Helper()
	s, err := readSummary(folder)
	must.Succeed(t, err)
	must.Succeed(t, scanAll(folder, eventsTable, s.Events, func(e *warehouse.Event) error {
		events = append(events, strings.Clone(e.UserToken)+" "+strings.Clone(e.Type))
		return nil
	}))
	must.Succeed(t, scanAll(folder, profilesTable, s.Profiles, func(p *warehouse.Profile) error {
		profiles = append(profiles, strings.Clone(p.UserToken))
		return nil
	}))
	return events, profiles
}

// Users who are deleted or opt out while a dump is read are left out, whatever file they are in.
func TestLateDeletions(t *testing.T) {
	defer func(n int64) { fileRows = n }(fileRows)
	for _, fileRows = range []int64{1, 2, 4, 100} {
		folder, done, err := exported(t, dump())
		must.Succeed(t, err)
		events, profiles := usersOf(t, folder)
		if want := []string{"ann view", "bob view", "dan view"}; !slices.Equal(events, want) || done.Events != 3 {
			t.Errorf("%d rows a file: events %q, %+v", fileRows, events, done)
		}
		if want := []string{"ann", "bob", "dan"}; !slices.Equal(profiles, want) || done.Profiles != 3 || done.Segments != 1 {
			t.Errorf("%d rows a file: profiles %q, %+v", fileRows, profiles, done)
		}
		r, err := verify("shop", folder, bufio.NewReader(strings.NewReader(strings.Join(slices.DeleteFunc(strings.SplitAfter(dump(), "\n"),
			func(line string) bool {
				return strings.Contains(line, `"eve"`) || strings.Contains(line, "conversion") && strings.Contains(line, "Seen")
			}), ""))))
		must.Succeed(t, err)
		if err := r.err(); err != nil || r.Same != 3 {
			t.Errorf("%d rows a file: %v\n%s", fileRows, err, r.text())
		}
	}
}

// Lines that are cut off anywhere, or are something else, leave nothing behind.
func TestDamagedLines(t *testing.T) {
	whole := dump()
	for name, lines := range map[string]string{
		"nothing": "", "another app": strings.Replace(whole, `"app":"shop"`, `"app":"other"`, 1), "no dump": "{}\n", "no JSON": "events\n",
		"without the first line": strings.Replace(whole, head, "", 1), "a fault": strings.Replace(whole, segment, `{"exportedFault":{"userToken":"ann","time":1,"id":"x"}}`+"\n", 1),
		"an event of no type": strings.Replace(whole, `"eventType":"view"`, `"eventType":"seen"`, 1), "cut": strings.Replace(whole, end, `{"exportCut":{"status":503,"message":"x"}}`+"\n", 1),
	} {
		folder, _, err := exported(t, lines)
		if left, _ := filepath.Glob(folder + "*"); err == nil || len(left) > 0 {
			t.Errorf("%s: %v, and %v is left", name, err, left)
		}
	}
	for n := 0; n < len(whole); n += 37 {
		folder, _, err := exported(t, whole[:n])
		if left, _ := filepath.Glob(folder + "*"); err == nil || len(left) > 0 {
			t.Fatalf("%d bytes: %v, and %v is left", n, err, left)
		}
	}
}

// An app without anything has files with columns, and two exports to one folder never mix.
func TestFolders(t *testing.T) {
	lines := head + `{"exportEnd":{"events":0,"faults":0}}` + "\n"
	folder, done, err := exported(t, lines)
	must.Succeed(t, err)
	if files, _ := filepath.Glob(filepath.Join(folder, "*.parquet")); len(files) != 3 || done.Events != 0 {
		t.Errorf("%v, %+v", files, done)
	}
	if _, err := export("shop", folder, bufio.NewReader(strings.NewReader(lines))); err == nil {
		t.Error("a second export to the same folder")
	}
	to := filepath.Join(t.TempDir(), "a", "b")
	waiting, begun := io.Pipe()
	first := make(chan error)
	go func() {
		_, err := export("shop", to, bufio.NewReader(waiting))
		first <- err
	}()
	_, err = io.WriteString(begun, profileLine("ann", "2026-11-21T09:59:00.000Z"))
	must.Succeed(t, err)
	if _, err := export("shop", to, bufio.NewReader(strings.NewReader(lines))); err != nil {
		t.Error(err)
	}
	_, err = io.WriteString(begun, dump())
	must.Succeed(t, err)
	if err := <-first; err == nil {
		t.Error("an export has replaced another one")
	}
	if s, err := readSummary(to); err != nil || s.Profiles != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if left, _ := os.ReadDir(filepath.Dir(to)); len(left) != 1 {
		t.Errorf("%v are left", left)
	}
}

// The program says how it is called.
func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"export"}, {"verify", "--app", "shop"}, {"export", "--app", "shop", "--to", "x", "more"}, {"export", "--bad"}, {"drop"}} {
		if err := run(args, strings.NewReader(""), io.Discard); err == nil || !strings.Contains(err.Error(), "usage: affinity-warehouse") {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// An export has what counts for a purpose of the surface export, by what users had said when the dump began.
func TestExportByPurposes(t *testing.T) {
	const purposes = `,"purposes":[{"name":"ads","default":false,"types":["view"],"facets":["brand"],"surfaces":["export"]},{"name":"stats","default":true,"names":["Other"],"surfaces":["export"]},{"name":"personal","default":true,"surfaces":["rank"]}]}}`
	said := func(user, state string) string {
		return fmt.Sprintf(`{"exportedConsents":{"userToken":%q,"purposes":[{"name":"ads",%s"askedAt":"2026-11-20T09:00:00.000Z","since":"2026-11-20T09:00:00.000Z","receivedUntil":"2026-11-20T09:00:01.000Z"}]}}`+"\n", user, state)
	}
	lines := strings.Replace(head, "}}\n", purposes+"\n", 1) + segment + said("ann", `"granted":true,`) + said("bob", `"granted":false,`) + said("dan", "") +
		eventLine("ann", "aaaaaaaaaaa", "view", nine) + eventLine("ann", "aaaaaaaaaab", "conversion", nine) + eventLine("ann", "aaaaaaaaaac", "view", nine-48*3_600_000) +
		eventLine("bob", "bbbbbbbbbbb", "view", nine) + eventLine("dan", "ddddddddddd", "view", nine) + eventLine("eve", "eeeeeeeeeee", "view", nine) +
		strings.ReplaceAll(eventLine("eve", "eeeeeeeeeef", "view", nine), "Seen", "Other") + said("bob", `"granted":true,`) + end
	folder, done, err := exported(t, lines)
	must.Succeed(t, err)
	events, _ := usersOf(t, folder)
	if !slices.Equal(events, []string{"ann view", "eve view"}) {
		t.Errorf("the files have events of %v, %+v", events, done)
	}
}
