package auditlog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/must"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 123_456_789, time.UTC)

var errDown = errors.New("the table is down")

type row struct {
	id           string
	begun, ended []byte
}

// memory is a Log that fails on demand.
type memory struct {
	mu             sync.Mutex
	rows           []row
	noBegin, noEnd bool
	apps           []string
}

func (m *memory) BeginEntry(_ context.Context, app, id string, entry []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.noBegin {
		return errDown
	}
	m.rows, m.apps = append(m.rows, row{id: id, begun: entry}), append(m.apps, app)
	return nil
}

func (m *memory) EndEntry(ctx context.Context, _, id string, end []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.noEnd || ctx.Err() != nil {
		return errDown
	}
	for i := range m.rows {
		if m.rows[i].id == id {
			m.rows[i].ended = end
		}
	}
	return nil
}

// ScanEntries is that of a Log of one app.
func (m *memory) ScanEntries(_ context.Context, _, after string, limit int, fn func(id string, begun, ended []byte) bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := slices.SortedFunc(slices.Values(m.rows), func(a, b row) int { return strings.Compare(a.id, b.id) })
	rows = slices.DeleteFunc(rows, func(r row) bool { return r.id <= after })
	for _, r := range rows[:min(limit, len(rows))] {
		if !fn(r.id, r.begun, r.ended) {
			break
		}
	}
	return nil
}

// entries returns all that m holds, in the order in which they were written.
func (m *memory) entries(t *testing.T) []auditlog.Entry {
	t.Helper()
	all, _, err := auditlog.Read(t.Context(), m, "shop", auditlog.Query{Limit: 1000})
	must.Succeed(t, err)
	written := func(e auditlog.Entry) int { return slices.IndexFunc(m.rows, func(r row) bool { return r.id == e.ID }) }
	slices.SortFunc(all, func(a, b auditlog.Entry) int { return written(a) - written(b) })
	return all
}

func (m *memory) AuditSalt(_ context.Context, app string) ([]byte, error) {
	if m.noBegin {
		return nil, errDown
	}
	return []byte("salt of " + app), nil
}

func recorder(m *memory, lines *strings.Builder) *auditlog.Recorder {
	return auditlog.New(m, func() time.Time { return now }, slog.New(slog.NewTextHandler(lines, nil)), func(context.Context) string { return "trace" })
}

func TestChangeIsRecorded(t *testing.T) {
	m := &memory{}
	ctx, gone := context.WithCancel(t.Context())
	err := recorder(m, new(strings.Builder)).Do(ctx, auditlog.Change{App: "shop", Actor: "admin", Action: auditlog.UserDelete, User: "ann@shop"},
		func() (auditlog.End, error) {
			if all := m.entries(t); len(all) != 1 || all[0].Outcome != auditlog.Unknown {
				t.Errorf("during the change the log is %+v", all)
			}
			gone() // the client goes away; the end is recorded all the same
			return auditlog.End{Detail: strings.Repeat("x", 10_000)}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	got := m.entries(t)[0]
	want := auditlog.Entry{
		ID: got.ID, At: now.Truncate(time.Microsecond), Actor: "admin", Action: auditlog.UserDelete, User: auditlog.Hash([]byte("salt of shop"), "ann@shop"),
		Detail: strings.Repeat("x", 500) + "...", Outcome: auditlog.Done, Trace: "trace",
	}
	if diff := cmp.Diff(want, got); diff != "" || strings.Contains(fmt.Sprint(got), "ann") {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A change that cannot be recorded is not made, and may be tried again.
func TestUnrecordedChangeIsNotMade(t *testing.T) {
	for name, c := range map[string]auditlog.Change{"entry": {App: "shop"}, "secret": {App: "shop", User: "ann"}} {
		err := recorder(&memory{noBegin: true}, new(strings.Builder)).Do(t.Context(), c, func() (auditlog.End, error) {
			t.Errorf("%s: the change is made", name)
			return auditlog.End{}, nil
		})
		var unwritten *auditlog.Unwritten
		if !errors.As(err, &unwritten) || !errors.Is(err, errDown) || !unwritten.Transient() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// After a change the log can be down. The change succeeds, and the entry says that
// nobody knows.
func TestLostEndStaysUnknown(t *testing.T) {
	m, lines := &memory{noEnd: true}, new(strings.Builder)
	if err := recorder(m, lines).Do(t.Context(), auditlog.Change{App: "shop"}, func() (auditlog.End, error) { return auditlog.End{}, nil }); err != nil {
		t.Error(err)
	}
	if e := m.entries(t)[0]; e.Outcome != auditlog.Unknown || !strings.Contains(lines.String(), "does not say how a change ended") {
		t.Errorf("%+v, logged %s", e, lines)
	}
}

// The text of an error may name a user, so the entry does not have it.
func TestFailedChangeKeepsNoErrorText(t *testing.T) {
	m, failed := &memory{}, errors.New("row of ann")
	err := recorder(m, new(strings.Builder)).Do(t.Context(), auditlog.Change{App: "shop"}, func() (auditlog.End, error) {
		return auditlog.End{Detail: "version 1 to 2"}, failed
	})
	if e := m.entries(t)[0]; !errors.Is(err, failed) || e.Outcome != auditlog.Failed || e.Detail != "version 1 to 2" {
		t.Errorf("%+v, %v", e, err)
	}
}

// A query that reads as much as it may says where to go on.
func TestReadsOfALongLog(t *testing.T) {
	m := &memory{}
	var ids []string
	for i, action := range []auditlog.Action{auditlog.StrategySet, auditlog.UserDelete, auditlog.IndexClear} {
		e := auditlog.Entry{ID: auditlog.NewID(now.Add(time.Duration(i) * time.Second)), Action: action}
		must.Succeed(t, auditlog.Begin(t.Context(), m, "shop", e))
		ids = append(ids, e.ID)
	}
	first := auditlog.Query{Limit: 5, Action: auditlog.StrategySet}
	got, next, err := auditlog.ReadOf(t.Context(), m, "shop", first, 2)
	if err != nil || len(got) != 0 || next != ids[1] {
		t.Errorf("two entries read: %v, next %q, %v", got, next, err)
	}
	first.After = next
	if got, next, err = auditlog.ReadOf(t.Context(), m, "shop", first, 2); err != nil || len(got) != 1 || got[0].ID != ids[0] || next != "" {
		t.Errorf("the rest: %v, next %q, %v", got, next, err)
	}
}

func TestIDs(t *testing.T) {
	times := []time.Time{{}, time.UnixMicro(0), time.UnixMicro(1).AddDate(1, 0, 0), now, now.Add(time.Microsecond), now.Add(time.Hour), now.AddDate(250, 0, 0), now.AddDate(5000, 0, 0)}
	last := "~"
	for _, at := range times {
		id := auditlog.NewID(at)
		if !auditlog.ValidID(id) {
			t.Errorf("%v: ID %q", at, id)
		}
		if id >= last && at.Year() > 1970 && at.Year() < 2286 {
			t.Errorf("the ID of %v, %s, sorts behind that of an earlier time, %s", at, id, last)
		}
		last = id
	}
	if got := auditlog.TimeOf(auditlog.NewID(now)); !got.Equal(now.Truncate(time.Microsecond)) {
		t.Errorf("the time of the ID of %v is %v", now, got)
	}
	seen := map[string]bool{}
	for range 1000 {
		seen[auditlog.NewID(now)] = true
	}
	if len(seen) != 1000 {
		t.Errorf("1000 IDs of one time are %d", len(seen))
	}
	for _, bad := range []string{"", "x", "0000000000000001-0000000000000000\n", "0000000000000001-000000000000000G", "salt", "000000000000001-0000000000000000"} {
		if auditlog.ValidID(bad) {
			t.Errorf("%q is an ID", bad)
		}
	}
}

func TestHashNeedsTheSecret(t *testing.T) {
	a, b := auditlog.Hash([]byte("a"), "ann"), auditlog.Hash([]byte("b"), "ann")
	if a == b || a != auditlog.Hash([]byte("a"), "ann") || len(a) != 32 {
		t.Errorf("hashes %s and %s", a, b)
	}
}

// Whatever the operator changes in a Store is recorded, and what they only tried on
// an app that does not exist is not.
func TestOperatorIsRecorded(t *testing.T) {
	ctx, m := t.Context(), &memory{}
	s := auditlog.NewOperated(config.NewMemory(), recorder(m, new(strings.Builder)))
	key := func(n, name string) config.Key {
		return config.Key{Hash: strings.Repeat(n, 64), Name: name, ACL: []string{"search"}}
	}
	ended := key("1", "web")
	ended.ValidUntil = now.Add(-time.Hour)
	if err := errors.Join(
		s.CreateApp(ctx, config.App{ID: "shop", RetentionDays: 30}),
		s.SetRetention(ctx, "shop", 7),
		s.SetConsistency(ctx, "shop", config.Strong),
		s.SetBrowserRanking(ctx, "shop", true),
		s.SetSegments(ctx, "shop", true),
		s.SetLimits(ctx, "shop", limit.Numbers{EventsPerSecond: 300}),
		s.PutKey(ctx, "shop", key("1", "web")),
		s.PutKey(ctx, "shop", key("2", "web")),
		s.PutKey(ctx, "shop", ended),
		s.PutKey(ctx, "shop", key("3", "")),
		s.DeleteKey(ctx, "shop", key("2", "").Hash),
	); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetEncoding(ctx, "shop", "json"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"app.create  retention 30 days", "app.retention  30 to 7 days", "app.consistency  strong", "app.ranking  browser on", "app.segments  on", `app.limits  {"eventsPerSecond":300}`,
		"key.add web hash 111111111111, permissions search", "key.rotate web hash 222222222222, permissions search",
		"key.change web hash 111111111111, permissions search, ends 2026-11-22T11:00:00Z",
		"key.add 333333333333 hash 333333333333, permissions search", "key.remove web hash 222222222222, permissions search",
		"app.encoding  encoding json",
	}
	var got []string
	for _, e := range m.entries(t) {
		got = append(got, fmt.Sprintf("%s %s %s", e.Action, e.Subject, e.Detail))
		if e.Actor != auditlog.Operator || e.Outcome != auditlog.Done || !slices.Contains(auditlog.Actions, e.Action) {
			t.Errorf("%+v", e)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, err := range map[string]error{
		"retention":   s.SetRetention(ctx, "nowhere", 1),
		"limits":      s.SetLimits(ctx, "nowhere", limit.Numbers{}),
		"segments":    s.SetSegments(ctx, "nowhere", true),
		"ranking":     s.SetBrowserRanking(ctx, "nowhere", true),
		"consistency": s.SetConsistency(ctx, "nowhere", config.Strong),
		"put key":     s.PutKey(ctx, "nowhere", key("4", "")),
		"delete key":  s.DeleteKey(ctx, "shop", key("2", "").Hash),
	} {
		if !errors.Is(err, config.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.CreateApp(ctx, config.App{ID: "shop"}); !errors.Is(err, config.ErrExists) {
		t.Error(err)
	}
	if len(m.rows) != len(want) {
		t.Errorf("%d entries after changes that were not made", len(m.rows)-len(want))
	}
}

// A refused change of a deleted app writes no entry.
func TestNoEntryOfADeletedApp(t *testing.T) {
	m, apps := &memory{}, config.NewMemory()
	s := auditlog.NewOperated(apps, recorder(m, new(strings.Builder)))
	if err := apps.CreateApp(t.Context(), config.App{ID: "shop"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteApp(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if err := s.CreateApp(t.Context(), config.App{ID: "shop"}); !config.IsDeleted(err) {
		t.Errorf("create it again: %v", err)
	}
	if err := s.SetRetention(t.Context(), "shop", 1); !errors.Is(err, config.ErrNotFound) {
		t.Errorf("change it: %v", err)
	}
	if len(m.rows) != 0 {
		t.Errorf("entries %+v of a deleted app", m.rows)
	}
	if _, err := apps.UpdateDeletion(t.Context(), "shop", func(d *config.Deletion) error { d.End(time.Now().Add(-config.Reserved), 0); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.CreateApp(t.Context(), config.App{ID: "shop"}); err != nil || len(m.rows) != 1 {
		t.Errorf("create it after 30 days: %v, %d entries", err, len(m.rows))
	}
}
