package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// copied returns what was acknowledged until now.
func (a *acknowledged) copied() *acknowledged {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &acknowledged{in: map[string]map[string]bool{}, events: a.events}
	for user, values := range a.in {
		c.in[user] = maps.Clone(values)
	}
	return c
}

// backupOf runs affinity backup and returns the folder that it has written.
func backupOf(t *testing.T, args ...string) string {
	t.Helper()
	done := affinity(t, "", append([]string{"backup"}, args...)...)
	done.wants(t, cli.ExitOK)
	dir, _, _ := strings.Cut(done.out, ": ")
	return dir
}

// A backup under load has everything that was acknowledged before it began, and each event once. So do a restored
// engine, a backup of the folder that it leaves, and what a schedule has written.
func TestBackupUnderLoad(t *testing.T) {
	t.Setenv(operator.Variable, fakeOperator)
	folder := t.TempDir()
	key, places := filepath.Join(folder, "key"), [2]string{filepath.Join(folder, "one"), filepath.Join(folder, "two")}
	affinity(t, "", "backup", "key", "--out", key).wants(t, cli.ExitOK, "age1")
	s := startEngine(t, stack.Options{Data: filepath.Join(folder, "data"), Operator: fakeOperator,
		Backups: stack.Backups{To: places[1], Every: time.Hour, Keep: 2}})
	c, err := client.New(client.Config{URL: s.URL, App: "demo", Key: stack.DemoKey, Retry: client.NoRetry})
	must(t, err)
	acked := &acknowledged{now: time.Now().UnixMilli(), pause: time.Millisecond, sent: map[string]int{}, in: map[string]map[string]bool{}}
	must(t, c.Strategies().SetJSON(t.Context(), acked.strategy(1), client.SetOptions{}))
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()
	for worker := 1; worker < 4; worker++ {
		load.Go(func() { acked.load(ctx, c, worker) })
	}
	await := func(events int) *acknowledged {
		t.Helper()
		must(t, cli.Poll(t.Context(), time.Minute, func() (bool, error) { return acked.copied().events > events, nil }))
		return acked.copied()
	}
	await(100)
	backupOf(t, "--to", places[0], "--url", s.URL, "--backup-key", key) // the next one shares its files
	before := await(200)
	dir := backupOf(t, "--to", places[0], "--url", s.URL, "--backup-key", key)
	after := await(before.events)
	stop()
	load.Wait()
	t.Logf("%d events before the backup, %d after it", before.events, after.events)
	must(t, cli.Poll(t.Context(), time.Minute, func() (bool, error) {
		names, err := filepath.Glob(filepath.Join(places[1], "2*", "manifest.json"))
		return len(names) > 0 && scraped(t, s.URL, "\naffinity_backup_age_seconds "), err
	}))
	affinity(t, "", "backup", "drill", "--from", places[1], "--users", "3").wants(t, cli.ExitOK, "as the manifest says, 1 app")

	restored := filepath.Join(folder, "restored")
	affinity(t, "", "backup", "verify", "--from", dir).wants(t, cli.ExitOK, "is whole")
	affinity(t, "", "backup", "restore", "--from", dir, "--data", restored).wants(t, cli.ExitFailed, "is encrypted")
	affinity(t, "", "backup", "restore", "--from", dir, "--data", restored, "--backup-key", key).wants(t, cli.ExitOK, "Start the engine with it")
	affinity(t, "", "data", "check", restored).wants(t, cli.ExitOK, "are in order")
	r, err := stack.Start(t.Context(), stack.Options{Data: restored})
	must(t, err)
	c, err = client.New(client.Config{URL: r.URL, App: "demo", Key: stack.DemoKey})
	must(t, err)
	must(t, before.check(t, c))
	affinity(t, "", "audit", "--sample", "50", "--url", r.URL).wants(t, cli.ExitOK)
	affinity(t, "", "backup", "--data", restored, "--to", places[0]).wants(t, cli.ExitFailed, "in use by another process")
	must(t, r.Close())
	backupOf(t, "--data", restored, "--to", places[0], "--keep", "1")
	if names, err := filepath.Glob(filepath.Join(places[0], "2*")); len(names) != 1 || err != nil {
		t.Errorf("%v are there, want one (%v)", names, err)
	}
	affinity(t, "", "backup", "drill", "--from", places[0], "--users", "20", "-o", "json").wants(t, cli.ExitOK, `"apps": 1`, `"users": 20`, `"differing": 0`)
}

// scraped reports whether the metrics of an engine have a text.
func scraped(t *testing.T, url, text string) bool {
	t.Helper()
	answer, err := http.Get(url + "/metrics")
	must(t, err)
	body, err := io.ReadAll(answer.Body)
	must(t, errors.Join(err, answer.Body.Close()))
	return strings.Contains(string(body), text)
}

func TestBackupRefuses(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(operator.Variable, "")
	data := filepath.Join(folder, "data")
	for line, want := range map[string]string{
		"backup":                                       "name the folder of backups with --to DIR",
		"backup --to D --keep -1":                      "must be at least 0",
		"backup --to D":                                "set " + operator.Variable,
		"backup --to D/b --data D":                     "within the data folder",
		"backup --to D --data D":                       "within the data folder",
		"backup verify":                                "name the backup with --from",
		"backup restore --from D":                      "name the new data folder with --data DIR",
		"backup drill --from D --users 0":              "must be from 1 to",
		"backup key":                                   "--out is required",
		"serve --data D --backup D/b":                  "within the data folder",
		"serve --data D --backup-keep 1":               "give both",
		"serve --data D --backup /b --backup-every 1s": "must be at least 1m",
		"serve --data D --backup /b --backup-keep -1":  "must be at least 0",
	} {
		affinity(t, "", strings.Fields(strings.ReplaceAll(line, " D", " "+data))...).wants(t, cli.ExitUsage, want)
	}
	must(t, os.MkdirAll(data, 0o700))
	for line, want := range map[string]string{
		"backup --to /nowhere/b --data D":       "is no data folder",
		"backup verify --from D":                "is no whole backup and holds none",
		"backup drill --from D --backup-key /x": "read the key of backups",
	} {
		affinity(t, "", strings.Fields(strings.ReplaceAll(line, " D", " "+data))...).wants(t, cli.ExitFailed, want)
	}
	s := startEngine(t, stack.Options{Operator: fakeOperator})
	t.Setenv(operator.Variable, fakeOperator)
	affinity(t, "", "backup", "--to", data, "--url", s.URL).wants(t, cli.ExitFailed, "keeps everything in memory")
	t.Setenv(operator.Variable, fakeOperator+"x")
	affinity(t, "", "backup", "--to", data, "--url", s.URL).wants(t, cli.ExitFailed, "another operator's token")
	affinity(t, "", "backup", "--to", data, "--url", "http://127.0.0.1:1").wants(t, cli.ExitFailed, "connection refused")
	affinity(t, "", "backup", "--to", data, "--url", "http://example.com").wants(t, cli.ExitUsage, "on this machine")
}
