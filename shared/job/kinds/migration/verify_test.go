package migration_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/migration"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// differences are ways in which a row of one schema may differ from that of the
// other; nil: it is missing.
var differences = map[string]func(store.LogEvent) *store.LogEvent{
	"missing": func(store.LogEvent) *store.LogEvent { return nil },
	"value": func(e store.LogEvent) *store.LogEvent {
		e.Counts = []affinity.Count{{Facet: "color", Value: "x", N: 1}}
		return &e
	},
	"facet": func(e store.LogEvent) *store.LogEvent {
		e.Counts = []affinity.Count{{Facet: "x", Value: "c0", N: 1}}
		return &e
	},
	"count": func(e store.LogEvent) *store.LogEvent {
		e.Counts = []affinity.Count{{Facet: "color", Value: "c0", N: 2}}
		return &e
	},
	"filter less": func(e store.LogEvent) *store.LogEvent { e.Counts = nil; return &e },
	"filter more": func(e store.LogEvent) *store.LogEvent {
		e.Counts = append(slices.Clone(e.Counts), affinity.Count{Facet: "x", Value: "y", N: 1})
		return &e
	},
	"filter twice": func(e store.LogEvent) *store.LogEvent {
		e.Counts = append(slices.Clone(e.Counts), e.Counts...)
		return &e
	},
	"name":           func(e store.LogEvent) *store.LogEvent { e.Name = "Gone"; return &e },
	"type":           func(e store.LogEvent) *store.LogEvent { e.Type = event.Click; return &e },
	"original":       func(e store.LogEvent) *store.LogEvent { return ptr(with(e, e.Counts...)) },
	"without filter": func(e store.LogEvent) *store.LogEvent { return ptr(with(e)) },
}

func ptr(e store.LogEvent) *store.LogEvent { return &e }

// TestDifferences: a verification finds each difference in either schema, lists
// its key and repairs it, so that the next verification passes. The schema that
// is read is right.
func TestDifferences(t *testing.T) {
	t.Parallel()
	for _, where := range schema.Names {
		for _, lies := range schema.Names {
			t.Run(fmt.Sprintf("in %s, from %s", where, lies), func(t *testing.T) {
				w := newHarness(t, lies, usual)
				events := visits(t, users, 2)
				w.apply(events...)
				w.does(lies.Other(), "start", "backfill")
				var wrong []string
				for _, name := range slices.Sorted(maps.Keys(differences)) {
					e := events[2*len(wrong)]
					wrong = append(wrong, key(e))
					w.take(where, e)
					if d := differences[name](e); d != nil {
						w.put(where, *d)
						if where == lies {
							w.events[place(e)] = *d
						}
					} else if where == lies {
						delete(w.events, place(e))
					}
				}
				st := w.does(lies.Other(), "verify")
				if n := int64(len(wrong)); st.Job.State != job.Failed || st.Job.Totals.Counts["faulty"] != n || st.Job.Totals.Counts["changed"] != n {
					t.Errorf("the verification is %s, %+v", st.Job.State, st.Job.Totals)
				}
				var listed []string
				for _, fault := range st.Faults {
					k, what, _ := strings.Cut(fault, ": ")
					if listed = append(listed, k); !strings.HasSuffix(what, ", now repaired") {
						t.Errorf("fault %q is not repaired", fault)
					}
				}
				slices.Sort(wrong)
				if slices.Sort(listed); !slices.Equal(listed, wrong) {
					t.Errorf("the faults are of %q, want %q", listed, wrong)
				}
				w.refuses(t, "cutover", lies.Other())
				w.wantBoth()
				w.wantDone(w.does(lies.Other(), "verify", "cutover"))
			})
		}
	}
}

// refuses checks that a step is out of order.
func (w *harness) refuses(t *testing.T, step string, to schema.Name) {
	t.Helper()
	var refused *migration.OutOfOrder
	if _, err := w.step(t.Context(), step, to); !errors.As(err, &refused) {
		t.Errorf("%s: %v, want it refused", step, err)
	}
}

// oneFilter is the value of a wide cell.
const oneFilter = `[[":","x",1]]`

// damages are damaged rows, by the reason that their fault gives.
var damages = []struct {
	name   string
	in     schema.Name // empty: either
	key    string
	cells  map[string]string // by family:qualifier
	reason string
}{
	{"key without time", "", "shop,a,x", nil, "want app,user,time,id"},
	{"key without user", "", "shop,x", nil, "want app,user,time,id"},
	{"key of another time", "", "shop,a,yesterday,id", nil, `time "yesterday"`},
	{"key of a minute among the user's events", "", "shop,a," + jobtest.Noon.Add(-90*time.Minute).Format("2006-01-02T15:04") + ",id", nil, "log key"},
	{"value", schema.Wide, "", map[string]string{"e:view,Seen,color": "{\"x"}, "view,Seen,color"},
	{"value of a narrow row", schema.Narrow, "", map[string]string{"view:Seen": "\x07no value"}, "view:Seen"},
	{"qualifier", schema.Wide, "", map[string]string{"e:view": oneFilter}, "want three CSV fields"},
	{"qualifier of more", schema.Wide, "", map[string]string{`e:view,a,b,c`: oneFilter}, "more than three CSV fields"},
	{"qualifier of quotes", schema.Wide, "", map[string]string{`e:view,"a,b`: oneFilter}, "quotes"},
	{"type", schema.Wide, "", map[string]string{`e:hover,a,b`: oneFilter}, `event type "hover" does not exist`},
	{"two events", schema.Wide, "", map[string]string{`e:view,a,b`: oneFilter, `e:view,b,b`: oneFilter}, "belongs to another event"},
	{"two events in a narrow row", schema.Narrow, "", map[string]string{"view:a": "[]", "click:a": "[]"}, "belongs to another event"},
	{"no filters and no objects", schema.Wide, "", map[string]string{"m:event": ""}, "its objects is missing"},
	{"no filters in a narrow row and no objects", schema.Narrow, "", map[string]string{"m:event": ""}, "its objects is missing"},
	{"objects", "", "", map[string]string{"m:event": "", "m:o": "\x01\xc8"}, "its objects is missing or damaged"},
	{"type of the objects", schema.Wide, "", map[string]string{"m:o": string(schema.Objects{Type: "hover"}.Append(nil))}, `event type "hover" does not exist`},
}

// TestDamage: a backfill counts rows that cannot be read in either schema and
// continues, and no verification passes before they are removed.
func TestDamage(t *testing.T) {
	t.Parallel()
	g := &gate{}
	s, client := storetest.NewWithClient(t, g.dial()...)
	for _, d := range damages {
		for _, in := range schema.Names {
			if d.in != "" && d.in != in {
				continue
			}
			t.Run(fmt.Sprintf("%s in %s", d.name, in), func(t *testing.T) {
				damaged := d.key
				if damaged == "" {
					damaged = "shop,a," + jobtest.Noon.Add(-90*time.Minute).Format(keyTime) + ",damaged"
				}
				cells := d.cells
				if cells == nil {
					cells = map[string]string{"m:event": "x"}
				}
				// The row is in the schema that is read, and then in the other
				// one.
				w := newHarnessOn(t, s, client, g, in, usual)
				w.clear(t)
				w.apply(visits(t, users[:3], 2)...)
				w.damage(t, in, damaged, cells)
				st := w.does(in.Other(), "start", "backfill")
				if st.Job.State != job.Done || st.Job.Totals.Counts["faulty"] != 1 || !strings.Contains(st.Faults[0], damaged) || !strings.Contains(st.Faults[0], d.reason) {
					t.Fatalf("the backfill is %s, %+v, faults %q", st.Job.State, st.Job.Totals, st.Faults)
				}
				for range 2 { // it is not repaired
					w.unverified(t, in.Other(), damaged, d.reason)
				}
				w.damage(t, in, damaged, nil)
				w.wantBoth()
				w.wantDone(w.does(in.Other(), "verify", "cutover"))

				w = newHarnessOn(t, s, client, g, in.Other(), usual)
				w.clear(t)
				w.apply(visits(t, users[:3], 2)...)
				w.damage(t, in, damaged, cells)
				w.refuses(t, "start", in)
				w.damage(t, in, damaged, nil)
				w.does(in, "start", "backfill")
				w.damage(t, in, damaged, cells)
				w.unverified(t, in, damaged, "now repaired") // by the row that is read
				w.wantDone(w.does(in, "verify", "cutover"))
				w.wantBoth()
			})
		}
	}
}

// damage writes a row at a key, or removes it.
func (w *harness) damage(t *testing.T, n schema.Name, key string, cells map[string]string) {
	t.Helper()
	m := bigtable.NewMutation()
	m.DeleteRow()
	for column, value := range cells {
		family, qualifier, _ := strings.Cut(column, ":")
		m.Set(family, qualifier, bigtable.Time(jobtest.Noon.Add(-90*time.Minute)), []byte(value))
	}
	if err := w.client.Open(map[schema.Name]string{schema.Wide: wideTable, schema.Narrow: narrowTable}[n]).Apply(t.Context(), key, m); err != nil {
		t.Fatal(err)
	}
}

// unverified checks that a verification fails because of one row. The user's
// profile may differ because of it.
func (w *harness) unverified(t *testing.T, to schema.Name, key, reason string) {
	t.Helper()
	st := w.does(to, "verify")
	if st.Job.State != job.Failed || len(st.Faults) == 0 || !strings.HasPrefix(st.Faults[0], key+": ") || !strings.Contains(st.Faults[0], reason) ||
		len(st.Faults) > 1 && (len(st.Faults) > 2 || !strings.HasPrefix(st.Faults[1], "profile of a: ")) {
		t.Fatalf("the verification is %s, %+v, faults %q", st.Job.State, st.Job.Totals, st.Faults)
	}
	w.refuses(t, "cutover", to)
}

// A verification with very many differences lists the first ones and ends.
func TestTooManyDifferences(t *testing.T) {
	t.Parallel()
	w := newHarness(t, schema.Wide, usual)
	w.apply(visits(t, users[:3], 2)...)
	var spoilt []store.LogEvent
	for e := range minutely(t, "c", migration.MaxDifferent+1_500) {
		e.Type, e.Counts = "hover", nil
		spoilt = append(spoilt, e)
	}
	w.put(schema.Wide, spoilt...)
	st := w.does(schema.Narrow, "start", "backfill")
	if st.Job.State != job.Done || st.Job.Totals.Counts["faulty"] != int64(len(spoilt)) || st.Job.Totals.Counts["changed"] != 6 || len(st.Faults) != job.MaxFaults {
		t.Fatalf("the backfill is %s, %+v, %d faults", st.Job.State, st.Job.Totals, len(st.Faults))
	}
	st = w.does(schema.Narrow, "verify")
	if st.Job.State != job.Failed || st.Job.Totals.Counts["faulty"] < migration.MaxDifferent/2 || st.Job.Totals.Counts["faulty"] > migration.MaxDifferent+500 ||
		st.Job.Totals.Counts["rows"] >= int64(len(spoilt)) || !strings.Contains(st.Job.Error, "at least 1000 rows") || len(st.Faults) != job.MaxFaults {
		t.Fatalf("the verification is %s, error %q, %+v", st.Job.State, st.Job.Error, st.Job.Totals)
	}
	w.refuses(t, "cutover", schema.Narrow)
}

// Equal rows score differently if the cell times of one schema put a row
// outside the window and its key does not. The profiles of a sample show the
// difference.
func TestProfilesThatDiffer(t *testing.T) {
	t.Parallel()
	for _, lies := range schema.Names {
		t.Run("from "+string(lies), func(t *testing.T) {
			w := newHarness(t, lies, usual)
			w.migrator.SetHeld(1) // users have two values
			w.apply(visits(t, users[:3], 2)...)
			w.wantDone(w.does(lies.Other(), "start", "backfill", "verify"))
			foreign := plain(t, "a", 0, "foreign")
			foreign.Time -= time.Minute.Milliseconds()
			m := bigtable.NewMutation()
			m.Set("m", "event", 1000, foreign.Original)
			if lies == schema.Narrow {
				m.Set("e", "view,Seen,color", 1000, []byte(`[[":","foreign",1]]`))
			} else {
				m.Set("view", "Seen", 1000, []byte("[]"))
			}
			table := w.client.Open(map[schema.Name]string{schema.Wide: wideTable, schema.Narrow: narrowTable}[lies.Other()])
			if err := table.Apply(t.Context(), key(foreign), m); err != nil {
				t.Fatal(err)
			}
			st := w.does(lies.Other(), "verify")
			if st.Job.State != job.Failed || st.Job.Totals.Counts["faulty"] != 1 || !strings.HasPrefix(st.Faults[0], "profile of a: ") || st.Job.Totals.Counts["profiles"] != 3 {
				t.Fatalf("the verification is %s, %+v, faults %q", st.Job.State, st.Job.Totals, st.Faults)
			}
			w.take(lies.Other(), foreign)
			w.wantDone(w.does(lies.Other(), "verify", "cutover"))
		})
	}
}

// A deleted event that remains in either schema is not a difference. The
// verification removes it from the new schema, where the purge may have passed
// already.
func TestDeletedEventsAreNoDifference(t *testing.T) {
	t.Parallel()
	for _, where := range schema.Names {
		t.Run("in "+string(where), func(t *testing.T) {
			w := newHarness(t, schema.Narrow, usual)
			events := visits(t, users[:3], 2)
			w.apply(events...)
			w.does(schema.Wide, "start", "backfill")
			w.forget("a")
			w.put(where, events[0])
			w.wantDone(w.does(schema.Wide, "verify"))
			w.wantRows(schema.Wide, 0)
			w.wantDone(w.does(schema.Wide, "cutover", "drop"))
			w.wantExact(t, "left-overs")
		})
	}
}

// A verification compares every row of a shard, and the profiles of a sample of
// its users.
func TestSample(t *testing.T) {
	t.Parallel()
	w := newHarness(t, schema.Wide, job.Settings{ShardUsers: 1000, Budget: time.Minute, Attempts: 3})
	var many []string
	for i := range 60 {
		many = append(many, fmt.Sprintf("u%02d", i))
	}
	w.apply(visits(t, many, 1)...)
	st := w.does(schema.Narrow, steps[:3]...)
	w.wantDone(st)
	if st.Job.Totals.Counts["profiles"] != 20 || st.Job.Totals.Counts["rows"] != 60 || st.Job.Totals.Counts["users"] != 60 {
		t.Errorf("the verification counts %+v", st.Job.Totals)
	}
}

// Of the values at the bound of a profile, either schema may list any. A verification
// reports a value that the bound does not explain.
func TestBoundedProfilesThatDiffer(t *testing.T) {
	t.Parallel()
	profile := func(listed string, score, leftOut float64) affinity.Profile {
		p := affinity.Profile{Known: true, Total: 2, Affinities: []affinity.Affinity{{Facet: "f", Value: listed, Scores: []float64{score}}}}
		if leftOut > 0 {
			p.LeftOut = []affinity.Affinity{{Facet: "f", Scores: []float64{leftOut}}}
		}
		return p
	}
	for name, c := range map[string]struct {
		a, b    affinity.Profile
		differs bool
	}{
		"equal":                 {profile("x", 2, 1), profile("x", 2, 1), false},
		"a tie":                 {profile("x", 1, 1), profile("y", 1+1e-12, 1), false},
		"above what one leaves": {profile("x", 2, 1), profile("y", 1, 1), true},
		"of one that lists all": {profile("x", 1, 0), profile("y", 1, 0), true},
		"another score":         {profile("x", 2, 1), profile("x", 3, 1), true},
		"truncated in one":      {profile("x", 2, 1), profile("x", 2, 0), true},
	} {
		for _, d := range []string{migration.DiffProfiles(c.a, c.b), migration.DiffProfiles(c.b, c.a)} {
			if (d != "") != c.differs {
				t.Errorf("%s: %q", name, d)
			}
		}
	}
}
