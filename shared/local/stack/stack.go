// Package stack runs the whole engine in one process: every function as it is
// deployed, over in-process emulators of Bigtable, Pub/Sub, Cloud Tasks and
// Firestore, or over the official emulators if their environment variables are
// set. It also takes the part of Cloud Scheduler. Development, demonstrations, end-to-end tests
// and production on one machine use it.
//
// Public functions listen on one address, and operators may have another (Options.Admin). Private functions listen
// on another, on loopback, behind a random token that only the emulators know. In-process
// emulators listen on loopback too and ask for a token of their own, which only
// the operator learns: other processes of the machine can reach these ports. They
// keep everything in memory until the process ends, or in a folder (Options.Data).
// Official emulators ask for no token.
package stack

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/functions/console"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/warehouse/outbox"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/disk"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/telemetry"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// Names of the resources that the local stack creates.
const (
	Project            = "affinity-local"
	Instance           = "local"
	EventsTopic        = bus.EventsTopic
	eventsSubscription = bus.EventsSubscription
	slowTopic          = bus.SlowTopic
	slowSubscription   = bus.SlowSubscription
	deadLetterTopic    = bus.DeadLetterTopic
	DeadLetters        = bus.DeadLetterSubscription
	tasksQueue         = queues + queue.ID
	purgesQueue        = queues + queue.PurgesID
	refreshQueues      = queues + queue.RefreshesID + "-"
	queues             = "projects/" + Project + "/locations/local/queues/"
)

// App is an app that exists from the start, with a key that holds every ACL and is
// a parent of secured keys.
// Region is where the app lives; empty: in the first one.
type App struct{ ID, Key, Region string }

// Options say what to start.
type Options struct {
	// Addr is where the public functions listen. Empty: a free port of loopback.
	Addr string
	Apps []App
	// Now is where the engine's clock starts. Zero: the real time.
	Now time.Time
	// Clock is the engine's clock in place of one that starts at Now, for simulations. Nil: Now counts.
	Clock func() time.Time
	// RetentionDays of the apps, 0 for no limit.
	RetentionDays int
	// Layout is the layout of the log of an app that is created. Zero:
	// schema.Default(). An app that exists in an emulator keeps its own.
	Layout schema.Layout
	// Identity is that of an app that is created: no process knows it without, so nothing has to settle.
	Identity config.Identity
	// AppProfile and ServingAppProfile are as store.Config has them; Bigtable
	// are server options of the in-process emulator.
	AppProfile, ServingAppProfile string
	Bigtable                      []grpc.ServerOption
	// Operator is the operator's token, see package operator. Empty: that of the folder, which the first start
	// makes, or a random one.
	Operator string
	// Dedicated are the apps with a topic and queues of their own.
	Dedicated config.Dedicated
	// Hosts are customers' hosts, each with the app that it serves.
	Hosts auth.Hosts
	// Forwarded is how many addresses proxies append to X-Forwarded-For, see auth.Environment.
	Forwarded int
	// TLS is that of the public address. Nil: plain HTTP.
	TLS *tls.Config
	// Admin is where operators find their routes, metrics, profiles of the process, and whether it is
	// ready: host:port of loopback, or unix:PATH. The public address then has none of it, and accepts
	// no DemoKey. Empty: the public address has the routes and the metrics.
	Admin string
	// Origins are those of web pages of other machines that an engine on loopback answers,
	// as browsers send them.
	Origins []string
	// Limits replace defaults where they are not zero.
	Limits limit.Numbers
	// ConfigTTL is how long functions cache the configuration. A recompute waits
	// twice as long before it begins. Zero: config.TTL.
	ConfigTTL time.Duration
	// Life is how long a request or a task may take at most. Zero: as long as its deployed
	// function may, and with regions regionalLife at most.
	Life time.Duration
	// PackWindow is PACK_WINDOW of ingest. Zero: as deployed. Negative: none.
	PackWindow time.Duration
	// LateWrites is how long after its end a deleted app is looked for once more. Zero:
	// half a minute, since no request of the stack runs as long.
	LateWrites time.Duration
	// Regions are those in which apps may live, each with a Bigtable instance, topics and
	// queues of its own. Empty: those of Data, or none.
	Regions []string
	// Tables are sets of tables of their own, each as NAME, in the first region, or as
	// REGION/NAME. An app moves to one like to a region.
	Tables []string
	// Data is a folder in which everything outlives the process: what was acknowledged is
	// there again when another one starts with it. Empty: all is in memory. It excludes the
	// official emulators.
	Data string
	// Sync makes the answers of success to requests that change something wait until a failure of the machine
	// cannot lose the change. It concerns Data alone.
	Sync bool
	// Files hold the database of Data, for tests. Nil: those of the system.
	Files vfs.FS
	// Backups of Data that the engine makes itself. Zero: none.
	Backups Backups
	// KeepRetention leaves apps that exist their retention.
	KeepRetention bool
	// Archive is a folder: accepted events are written to files in it, as a deployment
	// writes them to Cloud Storage. Empty: they are not.
	Archive string
	// Warehouse is a folder: rows for analysts are written to files in it, those of events in a folder warehouse and
	// those of deletions in warehouse-deletions, as a deployment writes them to BigQuery. Empty: there are none.
	Warehouse string
	// Recompute are the settings of jobs. Zero: those of the environment.
	Recompute job.Settings
	// MoreJobs returns kinds of jobs beside the engine's own. It makes their runners with
	// runner. Nil: none.
	MoreJobs func(runner func(job.Collection) job.Runner) []job.Kind
	// Watch sees what functions call, for tests.
	Watch Watch
	// Log is the logger of the functions. Nil: nothing is logged.
	Log *slog.Logger
}

// Watch sees what functions call. Where a field is nil, nothing is watched.
type Watch struct {
	// Function returns what answers the requests of a function in place of h.
	Function func(name string, h http.Handler) http.Handler
	// Documents returns what keeps the documents of a database in place of s.
	Documents func(database string, s documents.Store) documents.Store
	// Topics returns what takes the rows for analysts in place of t.
	Topics func(t outbox.Topics) outbox.Topics
	// Services are server options of the in-process emulators of Pub/Sub and Cloud Tasks.
	Services []grpc.ServerOption
}

// function returns what answers the requests of a function.
func (w Watch) function(name string, h http.Handler) http.Handler {
	if w.Function == nil {
		return h
	}
	return w.Function(name, h)
}

// Stack is a running engine.
type Stack struct {
	// URL is the base of the public functions.
	URL string
	// Operator is the operator's token.
	Operator string
	// Backends are the backends of the functions, for tests.
	Backends *Backends

	place operator.Place
	links *console.Links

	disk    *disk.Disk
	pubsub  *emulator.PubSub            // nil where an official emulator runs
	bridges map[string]*emulator.Bridge // by subscription
	tasks   *emulator.Tasks
	metrics http.Handler
	// archived are the subscriptions (full names) that write the archive and the rows of the warehouse.
	archived []string
	closers  []func() error // in the order of creation; closed in reverse
}

// Start starts an engine. It is ready when Start returns.
func Start(ctx context.Context, o Options) (*Stack, error) {
	s := &Stack{}
	if err := s.start(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("start local stack: %w", err), s.Close())
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Recompute == (job.Settings{}) {
		if err := env.Parse(&o.Recompute); err != nil {
			return err
		}
		o.Recompute.Concurrency = min(o.Recompute.Concurrency, tasksAtOnce-1)
	}
	if err := o.Recompute.Validate(); err != nil {
		return err
	}
	o.Recompute.MovedAtOnce = cmp.Or(o.Recompute.MovedAtOnce, 1) // the database and clients share this machine
	token := rand.Text()
	door, err := s.startAdmin(o)
	if err != nil {
		return err
	}
	s.place = operator.Place{Project: Project, EventsTopic: EventsTopic, DeadLetterSubscription: DeadLetters,
		Token: rand.Text(), Limits: o.limits()}
	// Listen first, so that the emulators know the address of the private functions.
	private, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for private functions: %w", err)
	}
	privateURL := "http://" + private.Addr().String()
	authorization := http.Header{"Authorization": {"Bearer " + token}}

	pubsub, err := s.open(ctx, o, privateURL+workerPath, authorization)
	if err != nil {
		return errors.Join(err, private.Close())
	}
	b := s.Backends
	if err := s.checkClock(ctx, b); err != nil {
		return errors.Join(err, private.Close())
	}
	s.serve(private, nil, guard(token, privateFunctions(b, o.Watch)), o.Log)
	if err := s.startBridges(ctx, o, pubsub, privateURL+processPath, authorization); err != nil {
		return err
	}
	// The jobs of an earlier process still exist, but their tasks only in a folder, and
	// there not those that it was about to create.
	if err := b.resume(ctx); err != nil {
		return err
	}
	s.startScheduler(privateURL+workerPath+"/nightly", authorization)
	if err := s.disk.Sync(); err != nil { // apps and keys that are made here
		return err
	}
	return s.servePublic(o, door)
}

// open opens the backends of the functions.
func (s *Stack) open(ctx context.Context, o Options, workerURL string, header http.Header) (messaging, error) {
	if err := s.openDisk(o); err != nil {
		return messaging{}, err
	}
	meters, err := s.startExporters(ctx, o)
	if err != nil {
		return messaging{}, err
	}
	base, err := s.openBase(ctx, o)
	if err != nil {
		return messaging{}, err
	}
	pubsub, err := s.openPubSub(ctx, o, base)
	if err != nil {
		return messaging{}, err
	}
	tasks, err := s.openTasks(ctx, o, base, workerURL, header)
	if err != nil {
		return messaging{}, err
	}
	base = base.WithLimits(o.limits())
	if base.Life = o.Life; base.Life == 0 && len(base.Regions) > 0 {
		base.Life = regionalLife
	}
	if base.Life > 0 {
		o.Recompute.Budget = min(o.Recompute.Budget, max(base.Life/2, time.Second))
	}
	base.Metrics = telemetry.NewMetrics(meters)
	base.CountUsage()
	s.onClose(func() error { base.Usage.Close(); return nil })
	cipher, err := s.cipher()
	if err := errors.Join(err, s.keepOperator(o)); err != nil {
		return messaging{}, err
	}
	s.Backends = newBackends(base, cipher, o, pubsub, tasks)
	s.onClose(s.Backends.flush)
	return pubsub, createApps(ctx, base.Config, s.Backends.Cipher, o)
}

// ConsoleLink returns a link that opens the console once, within ten minutes, with the key of
// an app.
func (s *Stack) ConsoleLink(a App) string { return s.URL + s.links.New(a.ID, a.Key) }

// Idle waits until every accepted event is in its user's profile, in the sample of recent
// events, if that takes it, and in the archive, if there is one, and every task that is due
// is done. The official Pub/Sub emulator does
// not report its backlog, so only the events that it has delivered are known.
func (s *Stack) Idle(ctx context.Context) error {
	for subscription := range s.bridges { // a message stays in its lane
		messages := s.bridges[subscription].Idle
		if s.pubsub != nil {
			messages = func(ctx context.Context) error { return s.pubsub.Idle(ctx, subscriptionName(subscription)) }
		}
		if err := messages(ctx); err != nil {
			return fmt.Errorf("wait for messages of %s: %w", subscription, err)
		}
	}
	if s.pubsub != nil {
		if err := s.pubsub.Idle(ctx, s.archived...); err != nil {
			return fmt.Errorf("wait for the archive: %w", err)
		}
	}
	if err := errors.Join(s.Backends.Sampled.Flush(ctx), s.Backends.RefusedLinks.Flush(ctx)); err != nil {
		return fmt.Errorf("write recent events and refused links: %w", err)
	}
	if err := s.tasks.Idle(ctx); err != nil {
		return fmt.Errorf("wait for tasks: %w", err)
	}
	return nil
}

// Close stops the engine after the requests and tasks in progress.
func (s *Stack) Close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(errs...)
}

func (s *Stack) onClose(f func() error) { s.closers = append(s.closers, f) }

func address(addr string) string {
	if addr == "" {
		return "127.0.0.1:0"
	}
	return addr
}

func (o Options) clock() func() time.Time {
	if o.Clock != nil {
		return o.Clock
	}
	if o.Now.IsZero() {
		return time.Now
	}
	began := time.Now()
	return func() time.Time { return o.Now.Add(time.Since(began)) }
}

// createApps creates the apps and their keys. An app that exists in an emulator
// keeps its layout. The first keys of an app become parents, as many as may.
func createApps(ctx context.Context, apps *config.Store, c config.Cipher, o Options) error {
	for _, a := range o.Apps {
		err := apps.CreateApp(ctx, config.App{ID: a.ID, Region: a.Region, RetentionDays: o.RetentionDays,
			Log: o.Layout, Identity: o.Identity, CreatedAt: time.Now()})
		if errors.Is(err, config.ErrExists) && o.KeepRetention {
			err = nil
		}
		if errors.Is(err, config.ErrExists) {
			err = apps.SetRetention(ctx, a.ID, o.RetentionDays)
		}
		if err != nil {
			return fmt.Errorf("create app %s: %w", a.ID, err)
		}
		key := config.Key{Hash: auth.Hash(a.Key), ACL: auth.All, CreatedAt: time.Now()}
		err = config.AddParent(ctx, apps, c, a.ID, key, a.Key)
		if errors.Is(err, config.ErrTooManyParents) {
			err = apps.PutKey(ctx, a.ID, key)
		}
		if err != nil {
			return fmt.Errorf("create key of app %s: %w", a.ID, err)
		}
	}
	return nil
}

// emulated reports whether the environment names an official emulator.
func emulated(variable string) bool { return os.Getenv(variable) != "" }
