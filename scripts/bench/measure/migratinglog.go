package measure

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cloud.google.com/go/bigtable"
	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/migration"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	tableWide       = store.TableEvents
	tableCopies     = "copies" // of narrow rows
	migrationShards = 4        // shards that a migration has in work at a time
	copiedRows      = 1000     // per request
	madeRows        = 10_000   // in memory
)

// migratingLog is a narrow log under migration.
type migratingLog struct {
	c        *client
	d        *dataset
	migrator *migration.Migrator
	queue    *tasks
}

// load writes the log and the user rows, from which a job plans its shards.
func (m *migratingLog) load(ctx context.Context) error {
	if err := m.c.admin.CreateTable(ctx, tableCopies); err != nil {
		return fmt.Errorf("create table %s: %w", tableCopies, err)
	}
	for _, name := range append([]string{familyOriginal}, schema.Narrow.Families()...) {
		if err := m.c.admin.CreateColumnFamilyWithConfig(ctx, tableCopies, name, bigtable.Family{}); err != nil {
			return fmt.Errorf("create family %s of table %s: %w", name, tableCopies, err)
		}
	}
	if err := loadLog(ctx, m.c, m.d, published); err != nil {
		return err
	}
	return share(ctx, loaders, m.d.users, 1, func() func(context.Context, span) error {
		return func(ctx context.Context, sp span) error {
			_, err := m.c.store.Users.TakeTicket(ctx, appID, m.d.user(sp.from))
			return err
		}
	})
}

func (m *migratingLog) empty(ctx context.Context, table string) error {
	if err := m.c.admin.DropAllRows(ctx, table); err != nil {
		return fmt.Errorf("empty table %s: %w", table, err)
	}
	return nil
}

// copyRows reads all narrow rows and writes them to another table as they are.
func (m *migratingLog) copyRows(ctx context.Context) error {
	from := m.c.raw.Open(store.TableEventsNarrow)
	return eachShard(ctx, m.d.users, m.d.logShard(), func() func(context.Context, span) error {
		to := pen{table: m.c.raw.Open(tableCopies)}
		return func(ctx context.Context, sp span) error {
			var failed error
			err := from.ReadRows(ctx, rowsOf(m.d, sp), func(r bigtable.Row) bool {
				mut := bigtable.NewMutation()
				for family, items := range r {
					for _, item := range items {
						mut.Set(family, item.Column[len(family)+1:], item.Timestamp, item.Value)
					}
				}
				failed = to.put(ctx, r.Key(), mut)
				return failed == nil
			})
			return errors.Join(err, failed, to.flush(ctx))
		}
	})
}

// pen writes rows, as many per request as the engine does.
type pen struct {
	table *bigtable.Table
	keys  []string
	muts  []*bigtable.Mutation
}

func (p *pen) put(ctx context.Context, key string, m *bigtable.Mutation) error {
	if p.keys, p.muts = append(p.keys, key), append(p.muts, m); len(p.keys) < copiedRows {
		return nil
	}
	return p.flush(ctx)
}

func (p *pen) flush(ctx context.Context) error {
	if len(p.keys) == 0 {
		return nil
	}
	errs, err := p.table.ApplyBulk(ctx, p.keys, p.muts)
	p.keys, p.muts = p.keys[:0], p.muts[:0]
	return errors.Join(append(errs, err)...)
}

// readAndWrite reads all narrow rows and drops them, and writes the wide rows that
// the backfill makes of them. They are prepared for some users at a time, so that
// they fit into memory; preparing them is not measured.
func (m *migratingLog) readAndWrite(ctx context.Context) (sum taken, err error) {
	if err := m.empty(ctx, tableWide); err != nil {
		return taken{}, err
	}
	from := m.c.raw.Open(store.TableEventsNarrow)
	users := max(workers(), madeRows/m.d.shape.events)
	for first := 0; first < m.d.users; first += users {
		part := span{first, min(first+users, m.d.users)}
		pens := m.make(part)
		t, err := m.c.measure(func() error {
			err := share(ctx, workers(), part.to-part.from, m.d.logShard(), func() func(context.Context, span) error {
				return func(ctx context.Context, sp span) error {
					return from.ReadRows(ctx, rowsOf(m.d, span{first + sp.from, first + sp.to}),
						func(bigtable.Row) bool { return true })
				}
			})
			if err != nil {
				return err
			}
			return share(ctx, workers(), len(pens), 1, func() func(context.Context, span) error {
				return func(ctx context.Context, sp span) error { return pens[sp.from].flush(ctx) }
			})
		})
		if err != nil {
			return taken{}, err
		}
		sum.seconds, sum.cpu, sum.received = sum.seconds+t.seconds, sum.cpu+t.cpu, sum.received+t.received
		sum.peakHeap = max(sum.peakHeap, t.peakHeap)
	}
	return sum, nil
}

// make prepares the wide rows of some users, a pen for each request.
func (m *migratingLog) make(part span) (pens []pen) {
	encoder := schema.NewEncoder(schema.Wide, published.Encoding)
	var events []entry
	var cells []schema.Cell
	for i := part.from; i < part.to; i++ {
		events = m.d.events(i, events)
		for _, e := range logEvents(m.d.user(i), events) {
			ts, mut := bigtable.Timestamp((e.Time-1)*1000), bigtable.NewMutation()
			mut.Set(familyOriginal, "event", ts, e.Original)
			mut.Set(familyOriginal, "o", bigtable.Timestamp(e.ReceivedAt()*1000),
				schema.Objects{Type: e.Type, Name: e.Name, Index: e.Index, ObjectIDs: e.ObjectIDs}.Append(nil))
			cells = encoder.Append(cells[:0], e.Type, e.Name, e.Counts)
			for _, c := range cells {
				mut.Set(c.Family, c.Qualifier, ts, c.Value)
			}
			if len(pens) == 0 || len(pens[len(pens)-1].keys) == copiedRows {
				pens = append(pens, pen{table: m.c.raw.Open(tableWide)})
			}
			p := &pens[len(pens)-1]
			p.keys, p.muts = append(p.keys, rowKey(&e)), append(p.muts, mut)
		}
	}
	return pens
}

func rowKey(e *store.LogEvent) string {
	return appID + "," + e.User + "," + event.FormatTime(e.Time) + "," + e.ID
}

const (
	transformed   = 10_000 // rows in memory
	transformTime = time.Second
)

// transform is how many events per second one core turns into wide cells, from
// rows in memory.
func (m *migratingLog) transform(ctx context.Context) (float64, error) {
	var entries []store.Entry
	enough := errors.New("enough")
	err := m.c.store.Events.Log(appID, published).Scan(ctx, schema.Narrow, store.Range{}, 0, func(e store.Entry) error {
		if entries = append(entries, e); len(entries) == transformed {
			return enough
		}
		return nil
	})
	if err != nil && !errors.Is(err, enough) {
		return 0, err
	}
	rows, encoder := store.NewLogDecoder(), schema.NewEncoder(schema.Wide, published.Encoding)
	var cells []schema.Cell
	events := 0
	t, err := m.c.measure(func() error {
		for began := time.Now(); time.Since(began) < transformTime; events += len(entries) {
			for _, e := range entries {
				ev, err := rows.Event(e.LogRow)
				if err != nil {
					return err
				}
				cells = encoder.Append(cells[:0], ev.Type, ev.Name, ev.Counts)
			}
		}
		return nil
	})
	return ratio(float64(events), t.cpu), err
}

// tasks is a queue that runs its tasks in this process.
type tasks struct {
	mu      sync.Mutex
	names   map[string]bool
	waiting []queue.Task
}

// Create adds a task unless one of that name exists.
func (t *tasks) Create(_ context.Context, task queue.Task) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names[task.Name] {
		return nil
	}
	if t.names == nil {
		t.names = map[string]bool{}
	}
	t.names[task.Name] = true
	t.waiting = append(t.waiting, task)
	return nil
}

// take removes and returns the waiting tasks.
func (t *tasks) take() []queue.Task {
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting := t.waiting
	t.waiting = nil
	return waiting
}

// work runs tasks, the waiting ones concurrently, until none is left.
func (t *tasks) work(ctx context.Context, r *job.Runner) error {
	for {
		waiting := t.take()
		if len(waiting) == 0 {
			return nil
		}
		g, ctx := errgroup.WithContext(ctx)
		for _, task := range waiting {
			g.Go(func() error { return runJob(ctx, r, task) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
	}
}

func runJob(ctx context.Context, r *job.Runner, task queue.Task) error {
	if task.Path == r.Plans().Path {
		t, err := r.Plans().Decode(task.Body)
		if err != nil {
			return err
		}
		_, err = r.Plan(ctx, t, 0)
		return err
	}
	t, err := r.Shards().Decode(task.Body)
	if err != nil {
		return err
	}
	_, err = r.Shard(ctx, t, 0)
	return err
}
