package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/store"
)

var auditTime = time.Date(2026, 11, 22, 12, 0, 0, 123_456_000, time.UTC)

func entryAt(at time.Time, action auditlog.Action, user string) auditlog.Entry {
	return auditlog.Entry{ID: auditlog.NewID(at), At: at, Actor: "admin", Action: action, User: user, Outcome: auditlog.Unknown}
}

func testAuditLog(t *testing.T, s fixture) {
	ctx := context.Background()
	begin := func(of string, e auditlog.Entry) auditlog.Entry {
		t.Helper()
		must.Succeed(t, auditlog.Begin(ctx, s.AuditLog, of, e))
		return e
	}
	first := begin(app, entryAt(auditTime, auditlog.StrategySet, ""))
	begin(app+"2", entryAt(auditTime, auditlog.StrategySet, ""))
	third := begin(app, entryAt(auditTime.Add(2*time.Microsecond), auditlog.IndexClear, ""))
	second := begin(app, entryAt(auditTime.Add(time.Microsecond), auditlog.UserDelete, "u1"))
	first.Outcome, first.Detail = auditlog.Done, "version 1"
	second.Outcome = auditlog.Failed
	must.Succeed(t, errors.Join(
		auditlog.Finish(ctx, s.AuditLog, app, first.ID, auditlog.End{Outcome: auditlog.Done, Detail: "version 1"}),
		auditlog.Finish(ctx, s.AuditLog, app, second.ID, auditlog.End{Outcome: auditlog.Failed}),
	))
	if _, err := s.AuditLog.AuditSalt(ctx, app); err != nil { // its row is no entry
		t.Fatal(err)
	}
	for _, test := range []struct {
		query auditlog.Query
		want  []auditlog.Entry
		next  string
	}{
		{auditlog.Query{Limit: 10}, []auditlog.Entry{third, second, first}, ""},
		{auditlog.Query{Limit: 3}, []auditlog.Entry{third, second, first}, ""},
		{auditlog.Query{Limit: 2}, []auditlog.Entry{third, second}, second.ID},
		{auditlog.Query{Limit: 2, After: second.ID}, []auditlog.Entry{first}, ""},
		{auditlog.Query{Limit: 1, Action: auditlog.StrategySet}, []auditlog.Entry{first}, ""},
		{auditlog.Query{Limit: 1, User: "u1"}, []auditlog.Entry{second}, second.ID},
		{auditlog.Query{Limit: 1, User: "u2"}, nil, ""},
	} {
		got, next, err := auditlog.Read(ctx, s.AuditLog, app, test.query)
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" || next != test.next {
			t.Errorf("%+v: next %q, %v (-want +got):\n%s", test.query, next, err, diff)
		}
	}
}

// A row that does not decode hides no other.
func testAuditLogOfNewerVersion(t *testing.T, s fixture) {
	ctx := context.Background()
	good := entryAt(auditTime, auditlog.StrategySet, "")
	must.Succeed(t, auditlog.Begin(ctx, s.AuditLog, app, good))
	bad := auditlog.NewID(auditTime.Add(time.Second))
	m := bigtable.NewMutation()
	m.Set("e", "begun", bigtable.Now(), []byte("garbage"))
	must.Succeed(t, s.client.Open(store.TableAuditLog).Apply(ctx, app+","+bad, m))
	got, _, err := auditlog.Read(ctx, s.AuditLog, app, auditlog.Query{Limit: 10})
	if err != nil || len(got) != 2 || got[0].ID != bad || got[0].Detail == "" || got[1].ID != good.ID {
		t.Errorf("%+v, %v", got, err)
	}
}

// Writers at one time lose no entry, and make one secret.
func testAuditLogWriters(t *testing.T, s fixture) {
	ctx := context.Background()
	const writers = 20
	salts := make([][]byte, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			e := entryAt(auditTime, auditlog.UserDelete, "")
			e.Subject = fmt.Sprint(i)
			var err error
			if salts[i], err = s.AuditLog.AuditSalt(ctx, app); err != nil {
				t.Error(err)
			}
			if err := auditlog.Begin(ctx, s.AuditLog, app, e); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, _, err := auditlog.Read(ctx, s.AuditLog, app, auditlog.Query{Limit: 100})
	if err != nil || len(got) != writers {
		t.Errorf("%d entries of %d, %v", len(got), writers, err)
	}
	for i, salt := range salts {
		if len(salt) != 32 || !bytes.Equal(salt, salts[0]) {
			t.Errorf("writer %d has another secret", i)
		}
	}
	if other, err := s.AuditLog.AuditSalt(ctx, app+"2"); err != nil || bytes.Equal(other, salts[0]) {
		t.Errorf("another app has the same secret (%v)", err)
	}
}
