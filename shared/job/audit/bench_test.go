package audit_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job/audit"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	appID = "shop"
	hour  = int64(3_600_000)
	day   = 24 * hour
)

var ctx = context.Background()

var decaying = strategy.Strategy{
	EventsScoring: []strategy.EventScore{{EventName: "Bought", EventType: event.Conversion, Score: 7}},
	FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 5}, {FacetName: "brand", Score: 2}},
	HalfLives:     strategy.InDays(1, 30),
	Aliases:       map[string]map[string]string{"color": {"Rouge": "Red"}},
}

// harness is an engine on a store of its own, an auditor that does not pause,
// and a clock that the test moves.
type harness struct {
	t     *testing.T
	store *store.Store
	apps  *config.Store
	eng   *profile.Engine
	audit *audit.Auditor
	clock int64
	waits int

	client *bigtable.Client
}

func newBench(t *testing.T) *harness {
	t.Helper()
	b := &harness{t: t, apps: config.NewMemory(), clock: 1_700_000_000_000}
	b.store, b.client = storetest.NewWithClient(t)
	must.Succeed(t, b.apps.CreateApp(ctx, config.App{ID: appID, RetentionDays: 90}))
	if _, _, err := b.apps.SetStrategy(ctx, appID, decaying); err != nil {
		t.Fatal(err)
	}
	b.eng = profile.New(b.store, b.apps, config.NewCached(b.apps, 0), func() time.Time { return time.UnixMilli(b.clock) }, slog.New(slog.DiscardHandler))
	b.audit = audit.New(audit.RowsOf(b.store), b.eng, b.apps)
	b.onSleep(func() {})
	return b
}

// onSleep runs f when the auditor pauses.
func (b *harness) onSleep(f func()) {
	b.audit.OnSleep(func(ctx context.Context, _ time.Duration) error {
		b.waits++
		f()
		return ctx.Err()
	})
}

func (b *harness) app() config.App {
	b.t.Helper()
	app, err := b.apps.App(ctx, appID)
	b.must(err)
	return app
}

func (b *harness) must(err error) {
	b.t.Helper()
	must.Succeed(b.t, err)
}

func (b *harness) apply(events ...store.LogEvent) {
	b.t.Helper()
	_, err := b.eng.Apply(ctx, b.app(), events)
	b.must(err)
}

func (b *harness) fold(user string) {
	b.t.Helper()
	if done, err := b.eng.Fold(ctx, b.app(), user); err != nil || !done {
		b.t.Fatalf("fold: %v, %v", done, err)
	}
}

func (b *harness) row(user string) store.User {
	b.t.Helper()
	row, err := b.store.Users.ReadUser(ctx, appID, user)
	b.must(err)
	return row
}

// spoil changes the stored profile of a user without the engine.
func (b *harness) spoil(user string, change func(*affinity.Profile)) {
	b.t.Helper()
	row := b.row(user)
	p, err := affinity.ParseProfile(row.Profile, 0)
	b.must(err)
	p.Affinities = slices.Clone(p.Affinities)
	change(&p)
	b.writeProfile(row, user, p.AppendBinary(nil))
}

func (b *harness) writeProfile(row store.User, user string, value []byte) {
	b.t.Helper()
	b.must(b.store.Users.WriteProfiles(ctx, appID, []store.ProfileWrite{{User: user, Row: row, Value: value, Summary: value, Version: row.Version}}))
}

// damageLog overwrites the colors of a user's event of now.
func (b *harness) damageLog(user string) {
	b.t.Helper()
	e := bought(user, b.clock, "Red", "Acme")
	key := fmt.Sprintf("%s,%s,%s,%s", appID, user, event.FormatTime(e.Time), e.ID)
	m := bigtable.NewMutation()
	m.Set("e", "conversion,Bought,color", bigtable.Timestamp(e.Time*1000), []byte{250})
	b.must(b.client.Open(store.TableEvents).Apply(ctx, key, m))
}

// block returns the only block of a user.
func (b *harness) block(user string) history.Block {
	b.t.Helper()
	m, err := history.ParseManifest(b.row(user).Manifest)
	b.must(err)
	if len(m.Blocks) != 1 {
		b.t.Fatalf("%s has %d blocks, want 1", user, len(m.Blocks))
	}
	return m.Blocks[0]
}

func (b *harness) run(users ...string) audit.Report {
	b.t.Helper()
	r, err := b.audit.Run(ctx, b.app(), users)
	b.must(err)
	return r
}

// wants compares the differences of an audit of some users with lines.
func (b *harness) wants(users string, lines ...string) {
	b.t.Helper()
	r := b.run(strings.Fields(users)...)
	var got []string
	differing := map[string]bool{}
	for _, d := range r.Differences {
		got = append(got, d.String())
		differing[d.User] = true
	}
	if diff := cmp.Diff(lines, got); diff != "" {
		b.t.Errorf("differences (-want +got):\n%s", diff)
	}
	if r.Differing != len(differing) || r.Compared != r.Sampled {
		b.t.Errorf("%d differing, want %d; %d of %d compared", r.Differing, len(differing), r.Compared, r.Sampled)
	}
}

// bought returns a conversion with a color and a brand.
func bought(user string, ms int64, color, brand string) store.LogEvent {
	return store.LogEvent{
		User: user, Time: ms, ID: fmt.Sprintf("%011d", ms%1e11), Type: event.Conversion, Name: "Bought", Original: []byte("{}"),
		Counts: []affinity.Count{{Facet: "color", Value: color, N: 1}, {Facet: "brand", Value: brand, N: 2}},
	}
}
