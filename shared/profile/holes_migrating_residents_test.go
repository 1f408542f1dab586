package profile_test

import (
	"errors"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// migrate lets writers write both schemas of the log.
func (r residents) migrate() {
	r.t.Helper()
	_, err := r.apps.UpdateLog(ctx, appID, func(a *config.App) error {
		a.Log.Write = []schema.Name{a.Log.Read, a.Log.Read.Other()}
		return nil
	})
	must.Succeed(r.t, err)
}

// rows returns how many events of a user a schema has in us.
func (r residents) rows(n schema.Name, user string) (rows int) {
	r.t.Helper()
	ranges := []store.UserRange{{User: user, To: history.End}}
	must.Succeed(r.t, r.us.Events.ReadLog(ctx, appID, schema.Of(n), ranges, func(string, store.LogRow) error {
		rows++
		return nil
	}))
	return rows
}

// A user who moves while the log migrates takes all events along in both schemas: the migration may have passed the region
// to which they go, and not yet the one that they leave.
func TestResidentMovesWhileTheLogMigrates(t *testing.T) {
	r := newResidents(t)
	r.apply(r.at(1))
	r.apply(r.at(2))
	r.migrate()
	r.eng = r.fresh()
	r.apply(r.at(3))
	must.Succeed(t, r.live("u", "us"))
	for _, n := range schema.Names {
		if rows := r.rows(n, "u"); rows != 3 {
			t.Errorf("us has %d events in schema %s, want 3", rows, n)
		}
	}
	r.eng = r.fresh()
	r.expect(3)
}

// A copy that began before the migration ends without an arrival, and begins again in both schemas.
func TestMigrationBeginsWhileAResidentMoves(t *testing.T) {
	r := newResidents(t)
	r.apply(r.at(1))
	m := r.movingAt(store.Leaving)
	r.migrate()
	for m.before != "" {
		r.step(m, 1)
	}
	if !errors.Is(m.err, profile.ErrSchemaChanged) {
		t.Fatalf("the mover ends with %v", m.err)
	}
	must.Succeed(t, r.live("u", "us"))
	for _, n := range schema.Names {
		if rows := r.rows(n, "u"); rows != 1 {
			t.Errorf("us has %d events in schema %s, want 1", rows, n)
		}
	}
	r.eng = r.fresh()
	r.expect(1)
}
