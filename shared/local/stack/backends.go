package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"
	cloudtasks "cloud.google.com/go/cloudtasks/apiv2"
	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"cloud.google.com/go/firestore"
	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/app/documents/documentdb"
	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/job/kinds/residents"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/queue"
	buspubsub "github.com/affinityengine/affinity/shared/queue/pubsub"
	"github.com/affinityengine/affinity/shared/queue/taskqueue"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/telemetry"
	"github.com/affinityengine/affinity/shared/telemetry/export"
	"github.com/affinityengine/affinity/terraform"
)

// local returns the options of a client of an in-process emulator.
func (s *Stack) local(addr string) []option.ClientOption {
	opts := []option.ClientOption{
		option.WithEndpoint(addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(emulator.WithToken(s.place.Token)),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())), option.WithGRPCConnectionPool(1),
	}
	if telemetry.Recording() { // spans are of requests over a connection
		return opts
	}
	return append(opts, emulator.InProcessClient()...)
}

// guard returns the options of an in-process emulator.
func (s *Stack) guard() []grpc.ServerOption {
	return []grpc.ServerOption{emulator.Guard(s.place.Token)}
}

// openBigtable opens the Bigtable of each region, by its name; that of a stack without
// regions has none.
func (s *Stack) openBigtable(ctx context.Context, o Options, regions config.Regions) (map[string]*store.Store, error) {
	var opts []option.ClientOption
	s.place.Bigtable = os.Getenv("BIGTABLE_EMULATOR_HOST")
	if s.place.Bigtable == "" {
		server, err := emulator.StartBigtable(s.disk, slices.Concat(s.guard(), o.Bigtable)...)
		if err != nil {
			return nil, err
		}
		s.onClose(func() error { server.Close(); return nil })
		s.place.Bigtable, opts = server.Addr, s.local(server.Addr)
	}
	if len(regions) == 0 {
		regions = config.Regions{{Instance: Instance}}
	}
	stores := map[string]*store.Store{}
	for _, region := range regions {
		admin, err := bigtable.NewAdminClient(ctx, Project, region.Instance, append(opts, option.WithTelemetryDisabled())...)
		if err != nil {
			return nil, fmt.Errorf("open Bigtable administration: %w", err)
		}
		if err := errors.Join(store.CreateTablesWith(ctx, admin, region.Suffix()), admin.Close()); err != nil {
			return nil, err
		}
		cfg := store.Config{
			Project: Project, Instance: region.Instance, Suffix: region.Suffix(), Profile: o.AppProfile,
			ServingProfile: o.ServingAppProfile, FilterColumns: 6,
			LocationSecret: locationSecret,
		}
		opened, err := store.Open(ctx, cfg, append(opts, export.ClientOptions()...)...)
		if err != nil {
			return nil, err
		}
		opened.LogTo(o.Log)
		stores[region.Name] = opened
	}
	return stores, nil
}

// openBase opens Bigtable and the configuration.
func (s *Stack) openBase(ctx context.Context, o Options) (backend.Base, error) {
	regions, err := s.regions(o)
	if err != nil {
		return backend.Base{}, err
	}
	stores, err := s.openBigtable(ctx, o, regions)
	if err != nil {
		return backend.Base{}, err
	}
	db, err := s.openConfig(ctx, o)
	if err != nil {
		return backend.Base{}, err
	}
	if err := s.settle(ctx, db.config, regions); err != nil {
		return backend.Base{}, err
	}
	now, ttl := o.clock(), cmp.Or(o.ConfigTTL, config.TTL)
	if len(regions) == 0 {
		s.onClose(stores[""].Close)
		b := backend.New(o.Log, now, stores[""], db.config, ttl)
		b.Documents, b.Keys = db.documents, db.keys
		return b, nil
	}
	b, err := backend.NewRegional(o.Log, now, backend.RegionSettings{All: regions}, stores, db.config, ttl)
	if err == nil {
		b.Documents, b.Keys = db.documents, db.keys
		s.onClose(b.Store.Close)
	}
	return b, err
}

// database keeps the configuration and the jobs in documents, and the keys in others.
type database struct {
	config          *config.Store
	documents, keys documents.Store
}

func (s *Stack) openConfig(ctx context.Context, o Options) (database, error) {
	if !emulated("FIRESTORE_EMULATOR_HOST") {
		kept, err := documents.NewStored(s.disk.Records(spaceDocuments))
		keys, keysErr := documents.NewStored(s.disk.Records(spaceKeys))
		after := int64(0)
		if emulated("BIGTABLE_EMULATOR_HOST") {
			after = time.Now().UnixMilli() // it may hold what an earlier process computed
		}
		if err := errors.Join(err, keysErr); err != nil {
			return database{}, err
		}
		return newDatabase(o, after, kept, keys), nil
	}
	// The databases that the commands of `affinity app` open.
	var opened [2]documents.Store
	for i, name := range []string{terraform.Database, terraform.KeysDatabase} {
		client, err := firestore.NewClientWithDatabase(ctx, Project, name, export.ClientOptions()...)
		if err != nil {
			return database{}, fmt.Errorf("open the database %s of Firestore: %w", name, err)
		}
		s.onClose(client.Close)
		opened[i] = documentdb.New(client)
	}
	return newDatabase(o, 0, opened[0], opened[1]), nil
}

func newDatabase(o Options, after int64, kept, keys documents.Store) database {
	if watch := o.Watch.Documents; watch != nil {
		kept, keys = watch(terraform.Database, kept), watch(terraform.KeysDatabase, keys)
	}
	return database{config.NewAfter(kept, keys, o.Log, after), kept, keys}
}

// messaging holds the stack's clients of Pub/Sub.
type messaging struct {
	client    *pubsub.Client
	bus       *buspubsub.Bus
	warehouse *buspubsub.Warehouse // nil: none
}

func (s *Stack) openPubSub(ctx context.Context, o Options, base backend.Base) (messaging, error) {
	dedicated := o.Dedicated
	var opts []option.ClientOption
	s.place.PubSub = os.Getenv("PUBSUB_EMULATOR_HOST")
	if s.place.PubSub == "" {
		server, err := emulator.StartPubSub(s.disk.Records(spaceMessages), slices.Concat(s.guard(), o.Watch.Services)...)
		if err != nil {
			return messaging{}, err
		}
		s.onClose(func() error { server.Close(); return nil })
		s.pubsub, s.place.PubSub, opts = server, server.Addr, s.local(server.Addr)
	}
	// The platform's part has no spans.
	client, err := pubsub.NewClient(ctx, Project, append(opts, option.WithTelemetryDisabled())...)
	if err != nil {
		return messaging{}, fmt.Errorf("open Pub/Sub: %w", err)
	}
	s.onClose(client.Close)
	topics := map[string]string{}
	for _, region := range regionNames(base.Regions.Whole()) {
		add := func(topic, subscription string) {
			topics[base.Regions.Named(topic, region)] = base.Regions.Named(subscription, region)
		}
		add(EventsTopic, eventsSubscription)
		add(slowTopic, slowSubscription)
		add(deadLetterTopic, DeadLetters)
		for app := range dedicated {
			topic, _ := dedicated.Named(EventsTopic, app)
			add(topic, ownSubscription(dedicated, app))
		}
	}
	for topic, subscription := range topics {
		if err := createTopic(ctx, client, topic, subscription); err != nil {
			return messaging{}, err
		}
	}
	if o.Archive != "" {
		for topic := range topics {
			if strings.HasPrefix(topic, deadLetterTopic) {
				continue // its messages are in the archive
			}
			if err := s.archive(ctx, messaging{client: client}, topic, o.Archive, o.Log); err != nil {
				return messaging{}, err
			}
		}
	}
	cfg := buspubsub.Config{Project: Project, Events: EventsTopic, Slow: slowTopic, DeadLetters: deadLetterTopic,
		Dedicated: dedicated,
		Regions:   base.Regions, Where: base.RegionOf}
	opts = append(opts, export.ClientOptions()...)
	opened, err := buspubsub.Open(ctx, cfg, opts...)
	if err != nil {
		return messaging{}, err
	}
	s.onClose(opened.Close)
	warehouse, err := s.openWarehouse(ctx, o, messaging{client: client}, base, opts)
	return messaging{client, opened, warehouse}, err
}

// ownSubscription is the subscription of a dedicated app's topic.
func ownSubscription(dedicated config.Dedicated, app string) string {
	topic, _ := dedicated.Named(EventsTopic, app)
	return topic + "-process"
}

func createTopic(ctx context.Context, client *pubsub.Client, topic, subscription string) error {
	_, err := client.TopicAdminClient.CreateTopic(ctx, &pubsubpb.Topic{Name: topicName(topic)})
	if err != nil && status.Code(err) != codes.AlreadyExists {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	_, err = client.SubscriptionAdminClient.CreateSubscription(ctx, &pubsubpb.Subscription{
		Name: subscriptionName(subscription), Topic: topicName(topic), AckDeadlineSeconds: 10,
	})
	if err != nil && status.Code(err) != codes.AlreadyExists {
		return fmt.Errorf("create subscription %s: %w", subscription, err)
	}
	return nil
}

func topicName(topic string) string { return "projects/" + Project + "/topics/" + topic }

func subscriptionName(subscription string) string {
	return "projects/" + Project + "/subscriptions/" + subscription
}

// A message waits mostly for the emulators, and messages that are pushed at once
// share refreshes. Those of the slow lane get few cores, so that others overtake
// them.
const (
	pushesAtOnce     = 80
	slowPushesAtOnce = 1
)

// startBridges delivers the messages of all regions to process.
func (s *Stack) startBridges(ctx context.Context, o Options, m messaging, endpoint string, header http.Header) error {
	s.bridges = map[string]*emulator.Bridge{}
	concurrencies := map[string]int{eventsSubscription: pushesAtOnce, slowSubscription: slowPushesAtOnce}
	for app := range o.Dedicated {
		concurrencies[ownSubscription(o.Dedicated, app)] = pushesAtOnce
	}
	regions := s.Backends.Regions
	for _, region := range regionNames(regions.Whole()) {
		for name, concurrency := range concurrencies {
			err := s.startBridge(ctx, m, regions.Named(name, region), regions.Named(deadLetterTopic, region),
				concurrency, endpoint, header, o.Log)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Stack) startBridge(ctx context.Context, m messaging, subscription, deadLetters string, concurrency int,
	endpoint string, header http.Header, log *slog.Logger) error {
	// The end of ctx must not stop it: messages that were pulled are delivered before
	// Close returns.
	bridge, err := emulator.StartBridge(context.WithoutCancel(ctx), m.client, emulator.BridgeConfig{
		Subscription: subscriptionName(subscription), Endpoint: endpoint, Header: header,
		DeadLetterTopic: topicName(deadLetters),
		// More than process allows, because process buries a message with the reason and
		// the bridge without. As in a deployment.
		MaxAttempts: 100, MinBackoff: 100 * time.Millisecond, MaxBackoff: 10 * time.Second, Concurrency: concurrency,
		Unary: s.pubsub == nil, Log: log,
	})
	if err != nil {
		return err
	}
	s.bridges[subscription] = bridge
	s.onClose(func() error { bridge.Close(); return nil })
	return nil
}

// tasksAtOnce is how many tasks run at a time, beside purges and refreshes of each queue.
const (
	tasksAtOnce     = 4
	purgesAtOnce    = 2
	refreshesAtOnce = 1
)

func (s *Stack) openTasks(ctx context.Context, o Options, base backend.Base, workerURL string,
	header http.Header) (queue.Queue, error) {
	var queues []*cloudtaskspb.Queue
	var refreshes []string
	for i := range queue.Refreshes {
		refreshes = append(refreshes, fmt.Sprint(refreshQueues, i))
	}
	for i, region := range regionNames(base.Regions.Whole()) {
		// A shard of a recompute may use several cores, so a few occupy a machine.
		atOnce := map[string]int32{tasksQueue: tasksAtOnce, purgesQueue: purgesAtOnce}
		for _, name := range refreshes {
			atOnce[name] = refreshesAtOnce
		}
		for name, n := range atOnce {
			names := []string{name}
			for app := range o.Dedicated {
				own, _ := o.Dedicated.Named(name, app)
				names = append(names, own)
			}
			for _, name := range names {
				if i > 0 {
					name = strings.Replace(name, "/locations/local/", "/locations/"+region+"/", 1)
				}
				queues = append(queues, localQueue(name, n))
			}
		}
	}
	server, err := emulator.StartTasks(emulator.TasksConfig{Queues: queues, Kept: s.keptTasks(workerURL, header),
		Server: slices.Concat(s.guard(), o.Watch.Services), Log: o.Log})
	if err != nil {
		return nil, err
	}
	s.tasks, s.place.Tasks = server, server.Addr
	s.onClose(func() error { server.Close(); return nil })
	client, err := cloudtasks.NewClient(ctx, append(s.local(server.Addr), export.ClientOptions()...)...)
	if err != nil {
		return nil, fmt.Errorf("open Cloud Tasks: %w", err)
	}
	s.onClose(client.Close)
	return taskqueue.New(client, taskqueue.Config{
		Queue: tasksQueue, Purges: purgesQueue, Refreshes: refreshes, Dedicated: o.Dedicated,
		Regions: base.Regions, Where: base.RegionOf, WorkerURL: workerURL,
		Header: map[string]string{"Authorization": header.Get("Authorization")},
	}), nil
}

func localQueue(name string, atOnce int32) *cloudtaskspb.Queue {
	return &cloudtaskspb.Queue{
		Name:       name,
		RateLimits: &cloudtaskspb.RateLimits{MaxConcurrentDispatches: atOnce},
		// More attempts than the worker allows itself. The waits are short, because no
		// overloaded service needs to recover.
		RetryConfig: &cloudtaskspb.RetryConfig{
			MaxAttempts: 100, MinBackoff: durationpb.New(100 * time.Millisecond),
			MaxBackoff: durationpb.New(10 * time.Second), MaxDoublings: 16,
		},
	}
}

// operatedApps are apps that the operator changes. The engine takes new keys at once, also if it
// was asked for their app before, and begins to move users who leave a region.
type operatedApps struct {
	auditlog.Operated
	cached    *config.Cached
	residents *residents.Runner
}

// SetResidency is that of auditlog.Operated.
func (o operatedApps) SetResidency(ctx context.Context, appID string, to config.Residency,
	settle time.Duration) (config.App, error) {
	app, err := o.Operated.SetResidency(ctx, appID, to, settle)
	if err == nil {
		err = o.residents.Leave(ctx, app)
	}
	return app, err
}

// CreateApp is that of auditlog.Operated.
func (o operatedApps) CreateApp(ctx context.Context, app config.App) error {
	defer o.cached.Forget(app.ID, "")
	return o.Operated.CreateApp(ctx, app)
}

// PutKey is that of auditlog.Operated.
func (o operatedApps) PutKey(ctx context.Context, appID string, key config.Key) error {
	defer o.cached.Forget(appID, key.Hash)
	return o.Operated.PutKey(ctx, appID, key)
}

// locationSecret is that of every local engine: who can read a folder's locations can read its users, too.
const locationSecret = "a local engine"
