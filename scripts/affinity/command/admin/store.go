package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"cloud.google.com/go/firestore"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/auditlog"
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
)

// engine is the local or the deployed engine on which a command works.
type engine struct {
	operator.Store
	operations
	local    *operator.Client // nil for a deployed engine
	deployed *deployedStore   // nil for a local engine
	url      string           // where it answers clients, "" if nobody has said
}

// operations are what an engine can do beyond its operator.Store.
type operations interface {
	operator.Holdouts
	DefaultLimits(ctx context.Context) (limit.Numbers, error)
	AddParent(ctx context.Context, appID string, key config.Key, text string) error
	// LastUsed is that of usage.Reader.
	LastUsed(ctx context.Context, appID string) (map[string]usage.Day, error)
	// Delete and Status are those of deletion.Runner.
	Delete(ctx context.Context, appID string, again bool) (deletion.Status, error)
	Status(ctx context.Context, appID string) (deletion.Status, error)
}

// ConfigStore is the configuration of a deployed engine, with the documents of its jobs.
type ConfigStore struct {
	Store     *config.Store
	Documents documents.Store
	Close     func() error
}

// deployedStore is the configuration of a deployed engine, with what its commands open when
// they need it. It records changes.
type deployedStore struct {
	auditlog.Operated
	// cipher opens the Cipher of parents.
	cipher func(ctx context.Context) (config.Cipher, error)
	// documents are those of jobs, and details what they say of users.
	documents documents.Store
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
func (s *deployedStore) LastUsed(ctx context.Context, appID string) (days map[string]usage.Day, err error) {
	table, err := s.usage(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	return table.LastUsed(ctx, appID)
}

// AddParent stores a key as a parent of secured keys, with its text encrypted under the KMS
// key of the deployment.
func (s *deployedStore) AddParent(ctx context.Context, appID string, key config.Key, text string) error {
	c, err := s.cipher(ctx)
	if err != nil {
		return err
	}
	return config.AddParent(ctx, s.Operated, c, appID, key, text)
}

// DefaultLimits returns the limits that a deployed engine has for every app.
func (*deployedStore) DefaultLimits(context.Context) (limit.Numbers, error) {
	return limit.Defaults, nil
}

// Openers open what a deployed engine consists of.
type Openers struct {
	Config  func(ctx context.Context, d Databases) (ConfigStore, error)
	Cipher  func(ctx context.Context, kmsKey string) (config.Cipher, error)
	Usage   func(ctx context.Context, tables Bigtables) (UsageTable, error)
	Details func(ctx context.Context, tables Bigtables) (JobDetails, error)
	Log     func(ctx context.Context, tables Bigtables) (ChangeLog, error)
	Tasks   func(ctx context.Context, c taskqueue.Config) (queue.Queue, func() error, error)
}

// Deployed returns openers that use the operator's Google credentials.
func Deployed() Openers {
	return Openers{Config: openFirestore, Cipher: openKMS, Usage: openBigtable, Details: openDetails,
		Log: openAuditLog, Tasks: openTasks}
}

// Databases are those of a deployed engine in Firestore, by Terraform's names for them.
type Databases struct{ Project, Configuration, Keys string }

// openFirestore connects with the operator's Google credentials, or to the emulator
// that FIRESTORE_EMULATOR_HOST names.
func openFirestore(ctx context.Context, d Databases) (ConfigStore, error) {
	var opened [2]*firestore.Client
	for i, name := range []string{d.Configuration, d.Keys} {
		client, err := firestore.NewClientWithDatabase(ctx, d.Project, name)
		if err != nil {
			return ConfigStore{}, fmt.Errorf("connect to Firestore database %s of project %s: %w (get credentials with "+
				"`gcloud auth application-default login`)", name, d.Project, err)
		}
		opened[i] = client
	}
	kept := documentdb.New(opened[0])
	return ConfigStore{
		Store: config.New(kept, documentdb.New(opened[1]), slog.Default()), Documents: kept,
		Close: func() error { return errors.Join(opened[0].Close(), opened[1].Close()) },
	}, nil
}

// openKMS returns the Cipher of a Cloud KMS key, with the operator's Google
// credentials.
func openKMS(ctx context.Context, key string) (config.Cipher, error) {
	if key == "" {
		return nil, cli.Usagef("--kms-key is required for a parent on a deployed engine: `terraform output -raw " +
			"parents_kms_key` prints it")
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
