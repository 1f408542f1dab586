package profile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// views is a cache that answers with one configuration after the other, and with
// the last from then on.
type views struct {
	*config.Store
	apps  []config.App
	asked func(n int)
	calls int
}

func (v *views) App(context.Context, string) (config.App, error) {
	app := v.apps[min(v.calls, len(v.apps)-1)]
	v.calls++
	if v.asked != nil {
		v.asked(v.calls)
	}
	return app, nil
}

func (b *fixture) engineOf(cache config.Source) *profile.Engine {
	return profile.New(b.store, b.apps, config.NewCached(cache, 0), b.now, slog.New(slog.DiscardHandler))
}

func (b *fixture) setLog(l schema.Layout) config.App {
	b.t.Helper()
	app, err := b.apps.UpdateLog(ctx, appID, func(a *config.App) error {
		a.Log = l
		return nil
	})
	must.Succeed(b.t, err)
	return app
}

var (
	wide = schema.Of(schema.Wide)
	both = schema.Layout{Write: schema.Names, Read: schema.Wide, Encoding: schema.JSON}
)

// A writer whose configuration changed while it wrote the log writes again, in the
// schemas of the new configuration.
func TestWriteFollowsSchemaChange(t *testing.T) {
	for name, do := range map[string]func(*profile.Engine, config.App, []store.LogEvent) error{
		"apply": func(e *profile.Engine, app config.App, events []store.LogEvent) error {
			_, err := e.Apply(ctx, app, events)
			return err
		},
		"import": func(e *profile.Engine, app config.App, events []store.LogEvent) error {
			_, err := e.Import(ctx, app, events)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, 90, plain)
			was := b.setLog(wide)
			is := b.setLog(both)
			must.Succeed(t, do(b.engineOf(&views{apps: []config.App{is}}), was, []store.LogEvent{bought("u", b.clock)}))
			for _, n := range schema.Names {
				rows := 0
				err := b.store.Events.Log(appID, schema.Of(n)).Read(ctx, []store.UserRange{{User: "u", To: history.End}}, func(string, store.LogRow) error {
					rows++
					return nil
				})
				if rows != 1 || err != nil {
					t.Errorf("%s holds %d rows, %v; want the event", n, rows, err)
				}
			}
		})
	}
}

// A profile that was computed from a schema that is no longer written is not
// stored: the schema may lack an event.
func TestStaleSchemaReadIsNotStored(t *testing.T) {
	type side struct {
		*fixture
		was, is config.App
		views   *views
		engine  *profile.Engine
	}
	for _, test := range []struct {
		name string
		// old is how often the process finds the old configuration.
		old     int
		changed bool // and gets ErrSchemaChanged
		do      func(s side) error
	}{
		{"recompute", 0, true, func(s side) error {
			_, err := s.engine.Recompute(ctx, s.was, store.Range{}, profile.RecomputeOptions{}, func(profile.Progress) error { return nil })
			return err
		}},
		{"read", 0, false, func(s side) error {
			r, err := s.engine.Read(ctx, s.was, "u", 0)
			if red(r) != 90 {
				return fmt.Errorf("answered with %v", red(r))
			}
			return err
		}},
		{"read of many", 0, false, func(s side) error {
			r, err := s.engine.ReadMany(ctx, s.was, []string{"u"}, 0)
			if red(r["u"]) != 90 {
				return fmt.Errorf("answered with %v", red(r["u"]))
			}
			return err
		}},
		{"computation", 0, false, func(s side) error {
			p, err := s.engine.Compute(ctx, s.was, []string{"u"}, affinity.Compile(plain))
			if red(profile.Result{Profile: p["u"][0]}) != 90 {
				return fmt.Errorf("computed %+v", p)
			}
			return err
		}},
		{"fold", 0, true, func(s side) error {
			_, err := s.engine.Fold(ctx, s.was, "u")
			return err
		}},
		{"refresh", 1, true, func(s side) error {
			_, err := s.engine.Apply(ctx, s.was, []store.LogEvent{bought("u", s.clock-1)})
			return err
		}},
		{"fold beside a refresh", 2, false, func(s side) error {
			_, err := s.engine.Apply(ctx, s.was, []store.LogEvent{bought("u", s.clock-1)})
			// The cells of this refresh, which could not know better, are not the subject.
			s.setStrategy(decaying)
			s.setStrategy(plain)
			return err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newFixture(t, 90, plain)
			was := b.setLog(both)
			lazy := b.engineOf(b.apps)
			lazy.NeverFold()
			if _, err := lazy.Import(ctx, b.app(), []store.LogEvent{bought("u", b.clock-3*hour), bought("u", b.clock-hour)}); err != nil {
				t.Fatal(err)
			}
			is := b.setLog(schema.Of(schema.Narrow))
			if _, err := lazy.Import(ctx, b.app(), []store.LogEvent{bought("u", b.clock-2*hour)}); err != nil {
				t.Fatal(err)
			}
			v := &views{apps: []config.App{is}}
			for range test.old {
				v.apps = append([]config.App{was}, v.apps...)
			}
			e := b.engineOf(v)
			e.SetLimits(1, 100, 100, 100, time.Minute)
			err := test.do(side{b, was, is, v, e})
			if errors.Is(err, profile.ErrSchemaChanged) != test.changed || err != nil && !test.changed {
				t.Errorf("%v, want ErrSchemaChanged: %t", err, test.changed)
			}
			if v.calls <= test.old {
				t.Fatalf("asked %d times, want more than %d", v.calls, test.old)
			}
			want := 90.0
			if test.old > 0 {
				want = 120
				if _, err := lazy.Apply(ctx, b.app(), []store.LogEvent{bought("u", b.clock-1)}); err != nil { // redelivered
					t.Fatal(err)
				}
			}
			if r := b.read("u"); red(r) != want {
				t.Errorf("color:Red is %v, want %v", red(r), want)
			}
		})
	}
}

// The log has migrated to another schema and back: the schemas are the same, but
// the rows were deleted in between.
func TestSchemaGenerationsDiffer(t *testing.T) {
	b := newFixture(t, 90, plain)
	was := b.setLog(wide)
	b.setLog(both)
	b.setLog(schema.Of(schema.Narrow))
	is := b.setLog(wide)
	e := b.engineOf(&views{apps: []config.App{is}, asked: func(n int) {
		if n > 1 {
			return
		}
		must.Succeed(t, b.store.Events.Log(appID, wide).Delete(ctx, []store.LogEvent{bought("u", b.clock)}))
	}})
	if _, err := e.Apply(ctx, was, []store.LogEvent{bought("u", b.clock)}); err != nil {
		t.Fatal(err)
	}
	if r := b.read("u"); red(r) != 30 {
		t.Errorf("color:Red is %v, want 30: the event was acknowledged", red(r))
	}
	if err := e.CheckSchema(ctx, was); !errors.Is(err, profile.ErrSchemaChanged) {
		t.Errorf("%v, want ErrSchemaChanged", err)
	}
	if err := e.CheckSchema(ctx, is); err != nil {
		t.Error(err)
	}
}

// A request may carry a newer configuration than the cache holds.
func TestCacheOlderThanRequest(t *testing.T) {
	b := newFixture(t, 90, plain)
	old := b.setLog(both)
	migrated := both
	migrated.Read = schema.Narrow
	is := b.setLog(migrated)
	e := b.engineOf(&views{apps: []config.App{old}})
	if _, err := e.Apply(ctx, is, []store.LogEvent{bought("u", b.clock)}); err != nil {
		t.Fatal(err)
	}
	_, err := e.Recompute(ctx, is, store.Range{}, profile.RecomputeOptions{}, func(profile.Progress) error { return nil })
	if err != nil {
		t.Error(err)
	}
	if r := b.read("u"); red(r) != 30 || !r.Stored {
		t.Errorf("%+v", r)
	}
}
