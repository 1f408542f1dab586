package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"cloud.google.com/go/firestore"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/config/configdb"
	"github.com/affinityengine/affinity/shared/app/config/kmscipher"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/jobdb"
	"github.com/affinityengine/affinity/shared/job/kinds/deletion"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/queue/taskqueue"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// appStore holds apps and keys. Its methods and errors are those of config.Store.
type appStore interface {
	Apps(ctx context.Context) ([]string, error)
	App(ctx context.Context, appID string) (config.App, error)
	CreateApp(ctx context.Context, app config.App) error
	SetRetention(ctx context.Context, appID string, days int) error
	SetConsistency(ctx context.Context, appID string, c config.Consistency) error
	SetBrowserRanking(ctx context.Context, appID string, on bool) error
	SetSegments(ctx context.Context, appID string, on bool) error
	SetLimits(ctx context.Context, appID string, n limit.Numbers) error
	DefaultLimits(ctx context.Context) (limit.Numbers, error)
	SetEncoding(ctx context.Context, appID string, e schema.Encoding) (config.App, error)
	Keys(ctx context.Context, appID string) ([]config.Key, error)
	PutKey(ctx context.Context, appID string, key config.Key) error
	AddParent(ctx context.Context, appID string, key config.Key, text string) error
	DeleteKey(ctx context.Context, appID, hash string) error
	// Delete and Status are those of deletion.Runner.
	Delete(ctx context.Context, appID string, again bool) (deletion.Status, error)
	Status(ctx context.Context, appID string) (deletion.Status, error)
	// LastUsed is that of usage.Reader.
	LastUsed(ctx context.Context, appID string) (map[string]usage.Day, error)
}

// configStore is an appStore of a deployed engine.
type configStore struct {
	config.Store
	close func() error
	// cipher opens the Cipher of parents.
	cipher func(ctx context.Context) (config.Cipher, error)
	// jobs has the documents of jobs, and details what they say of users.
	jobs    func(job.Collection) job.Jobs
	details job.Details
	// queue opens the queue of the worker.
	queue func(ctx context.Context) (queue.Queue, func() error, error)
	// usage opens the table of usage.
	usage func(ctx context.Context) (usageTable, error)
}

// usageTable is what a deployed engine's apps used.
type usageTable interface {
	usage.Reader
	Close() error
}

func (s configStore) LastUsed(ctx context.Context, appID string) (days map[string]usage.Day, err error) {
	table, err := s.usage(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	return table.LastUsed(ctx, appID)
}

func (s configStore) AddParent(ctx context.Context, appID string, key config.Key, text string) error {
	c, err := s.cipher(ctx)
	if err != nil {
		return err
	}
	return config.AddParent(ctx, s.Store, c, appID, key, text)
}

func (s configStore) SetEncoding(ctx context.Context, appID string, e schema.Encoding) (config.App, error) {
	return operator.SetEncoding(ctx, s.Store, appID, e)
}

// DefaultLimits returns the limits that a deployed engine has for every app.
func (configStore) DefaultLimits(context.Context) (limit.Numbers, error) { return limit.Defaults, nil }

// openers open what a deployed engine consists of.
type openers struct {
	config  func(ctx context.Context, project, database string) (configStore, error)
	cipher  func(ctx context.Context, kmsKey string) (config.Cipher, error)
	usage   func(ctx context.Context, tables bigtables) (usageTable, error)
	details func(ctx context.Context, tables bigtables) (jobDetails, error)
	log     func(ctx context.Context, tables bigtables) (changeLog, error)
	tasks   func(ctx context.Context, c taskqueue.Config) (queue.Queue, func() error, error)
}

// deployed returns openers that use the operator's Google credentials.
func deployed() openers {
	return openers{config: openFirestore, cipher: openKMS, usage: openBigtable, details: openDetails, log: openAuditLog, tasks: openTasks}
}

// openFirestore connects with the operator's Google credentials, or to the emulator
// that FIRESTORE_EMULATOR_HOST names.
func openFirestore(ctx context.Context, project, database string) (configStore, error) {
	client, err := firestore.NewClientWithDatabase(ctx, project, database)
	if err != nil {
		return configStore{}, fmt.Errorf("connect to Firestore database %s of project %s: %w (get credentials with `gcloud auth application-default login`)",
			database, project, err)
	}
	jobs := func(c job.Collection) job.Jobs { return jobdb.New(client, c) }
	return configStore{Store: configdb.New(client, slog.Default()), jobs: jobs, close: client.Close}, nil
}

// openKMS returns the Cipher of a Cloud KMS key, with the operator's Google
// credentials.
func openKMS(ctx context.Context, key string) (config.Cipher, error) {
	if key == "" {
		return nil, cli.Usagef("--kms-key is required for a parent on a deployed engine: `terraform output -raw parents_kms_key` prints it")
	}
	return kmscipher.Open(ctx, kmscipher.Config{Key: key})
}

// openBigtable connects with the operator's Google credentials, or to the emulator
// that BIGTABLE_EMULATOR_HOST names.
func openBigtable(ctx context.Context, tables bigtables) (usageTable, error) { return tables.open(ctx) }
