package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"cloud.google.com/go/firestore"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/config/kmscipher"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/app/documents/documentdb"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/job"
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

// ConfigStore is an appStore of a deployed engine.
type ConfigStore struct {
	config.Store
	Close func() error
	// cipher opens the Cipher of parents.
	cipher func(ctx context.Context) (config.Cipher, error)
	// Documents are those of jobs, and details what they say of users.
	Documents documents.Store
	details   job.Details
	// queue opens the queue of the worker.
	queue func(ctx context.Context) (queue.Queue, func() error, error)
	// usage opens the table of usage.
	usage func(ctx context.Context) (UsageTable, error)
}

// UsageTable is what a deployed engine's apps used.
type UsageTable interface {
	usage.Reader
	Close() error
}

// LastUsed returns the last day on which each key of an app was used, by the key's
// hash.
func (s ConfigStore) LastUsed(ctx context.Context, appID string) (days map[string]usage.Day, err error) {
	table, err := s.usage(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	return table.LastUsed(ctx, appID)
}

// AddParent stores a key as a parent of secured keys, with its text encrypted under the KMS
// key of the deployment.
func (s ConfigStore) AddParent(ctx context.Context, appID string, key config.Key, text string) error {
	c, err := s.cipher(ctx)
	if err != nil {
		return err
	}
	return config.AddParent(ctx, s.Store, c, appID, key, text)
}

// SetEncoding sets the encoding in which the log of an app is written from now on.
func (s ConfigStore) SetEncoding(ctx context.Context, appID string, e schema.Encoding) (config.App, error) {
	return operator.SetEncoding(ctx, s.Store, appID, e)
}

// DefaultLimits returns the limits that a deployed engine has for every app.
func (ConfigStore) DefaultLimits(context.Context) (limit.Numbers, error) { return limit.Defaults, nil }

// Openers open what a deployed engine consists of.
type Openers struct {
	Config  func(ctx context.Context, project, database string) (ConfigStore, error)
	Cipher  func(ctx context.Context, kmsKey string) (config.Cipher, error)
	Usage   func(ctx context.Context, tables Bigtables) (UsageTable, error)
	Details func(ctx context.Context, tables Bigtables) (JobDetails, error)
	Log     func(ctx context.Context, tables Bigtables) (ChangeLog, error)
	Tasks   func(ctx context.Context, c taskqueue.Config) (queue.Queue, func() error, error)
}

// Deployed returns openers that use the operator's Google credentials.
func Deployed() Openers {
	return Openers{Config: openFirestore, Cipher: openKMS, Usage: openBigtable, Details: openDetails, Log: openAuditLog, Tasks: openTasks}
}

// openFirestore connects with the operator's Google credentials, or to the emulator
// that FIRESTORE_EMULATOR_HOST names.
func openFirestore(ctx context.Context, project, database string) (ConfigStore, error) {
	client, err := firestore.NewClientWithDatabase(ctx, project, database)
	if err != nil {
		return ConfigStore{}, fmt.Errorf("connect to Firestore database %s of project %s: %w (get credentials with `gcloud auth application-default login`)",
			database, project, err)
	}
	d := documentdb.New(client)
	return ConfigStore{Store: config.New(d, slog.Default()), Documents: d, Close: client.Close}, nil
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
func openBigtable(ctx context.Context, tables Bigtables) (UsageTable, error) {
	s, err := tables.open(ctx)
	if err != nil {
		return nil, err
	}
	return s.Usage, nil
}
