package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/store/rowstream"
)

// Config names the Bigtable instance and the ways into it.
type Config struct {
	Project  string `env:"BIGTABLE_PROJECT,required"`
	Instance string `env:"BIGTABLE_INSTANCE,required"`
	// Suffix is appended to the name of every table. Dedicated sets of tables have one, the
	// common set has none; see config.Region.
	Suffix string `env:"-"`
	// Profile is a single-cluster app profile with row transactions. Every write, and
	// every read that leads to a write, must see one cluster.
	Profile string `env:"BIGTABLE_APP_PROFILE"`
	// ServingProfile may be multi-cluster: it only reads stored profiles. Empty means
	// Profile.
	ServingProfile string `env:"BIGTABLE_SERVING_APP_PROFILE"`
	// AnalysisProfile may be a profile of Data Boost, which does not see what was written
	// within AnalysisLag: it only serves ScanLong. Empty means Profile.
	AnalysisProfile string `env:"BIGTABLE_ANALYSIS_APP_PROFILE"`
	// FilterColumns is the largest number of columns in a filter. For a strategy that
	// scores more columns, or whose filter would be too large, Bigtable sends whole
	// rows. The best value depends on the server: an emulator copies a row once for
	// every column.
	FilterColumns int `env:"BIGTABLE_FILTER_COLUMNS" envDefault:"150"`
	// LocationSecret is the secret of the deployment under which the keys of locations hold a hash of each user.
	// Empty: no app can have users in regions of their own.
	LocationSecret string `env:"LOCATION_SECRET"`
}

// Store reads and writes the tables, each through its own view. It is safe for concurrent use.
type Store struct {
	Users        Users
	Events       Events
	Histories    Histories
	Dictionaries Dictionaries
	Calls        Calls
	Changes      Changes
	Catalog      Catalog
	Crowd        Crowd
	Segments     Segments
	Refused      RefusedTable
	Recent       Recent
	Usage        Usage
	Rates        Rates
	Jobs         Jobs
	AuditLog     AuditLog
	Rows         Rows
	Locations    Locations

	client, serving *bigtable.Client
	analysis        *bigtable.Client // nil: none of its own
	tables          tables
	separateServing bool
	filterColumns   int
	meter           *meter
	locationSecret  string
	log             *slog.Logger     // nil: none
	region          string           // of a store of one of several regions
	clock           func() time.Time // of date rows; tests replace it
}

// LogTo makes the store log faults that it does not return. It must be called
// before any other method.
func (s *Store) LogTo(log *slog.Logger) {
	s.log = log
	all, _ := s.Regions()
	for _, at := range all {
		at.LogTo(log)
	}
}

func (s *Store) logger() *slog.Logger {
	if s.log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.log
}

// Limits of one MutateRows request. Bigtable accepts 100,000 mutations in a request,
// and a row here has at most some hundred. Requests of 4 MB of very large rows are no
// faster, hold more memory, and other requests wait for them.
const (
	bulkRows  = 1000
	bulkBytes = 1 << 20
)

// Open makes the clients. On Google's Bigtable a client pings the instance first,
// so that Open fails if the instance is unreachable. On an emulator the first call
// fails.
func Open(ctx context.Context, cfg Config, opts ...option.ClientOption) (*Store, error) {
	m := &meter{}
	primary, err := newClient(ctx, cfg, cfg.Profile, m, opts)
	if err != nil {
		return nil, err
	}
	s := (&Store{client: primary.Client, serving: primary.Client, filterColumns: cfg.FilterColumns, meter: m,
		locationSecret: cfg.LocationSecret}).view()
	serving := primary
	if cfg.ServingProfile != "" && cfg.ServingProfile != cfg.Profile {
		s.separateServing = true
		if serving, err = newClient(ctx, cfg, cfg.ServingProfile, m, opts); err != nil {
			return nil, errors.Join(err, primary.Close())
		}
		s.serving = serving.Client
	}
	s.tables = openTables(primary, serving)
	if cfg.AnalysisProfile != "" && cfg.AnalysisProfile != cfg.Profile {
		analysis, err := newClient(ctx, cfg, cfg.AnalysisProfile, m, opts)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.analysis, s.tables.analysis = analysis.Client, openLogs(analysis)
	}
	return s, nil
}

// client is a client of Bigtable and its connections.
type client struct {
	*bigtable.Client
	conns  *rowstream.Conns
	suffix string // of the names of tables
}

func (c client) table(name string) *bigtable.Table { return c.Open(name + c.suffix) }

func newClient(ctx context.Context, cfg Config, profile string, m *meter, opts []option.ClientOption) (client, error) {
	conns := rowstream.NewConns()
	opts = slices.Concat(m.options(conns), opts)
	// For its own metrics the client would look for a metadata server at every start.
	// The engine has other metrics. Requests in sessions pass by the interceptors that
	// count rows. Releases and functions are built without DirectPath.
	c, err := bigtable.NewClientWithConfig(ctx, cfg.Project, cfg.Instance,
		bigtable.ClientConfig{AppProfile: profile, MetricsProvider: bigtable.NoopMetricsProvider{},
			DisableSession: true, DisableDirectAccess: true}, opts...)
	if err != nil {
		return client{}, fmt.Errorf("open Bigtable instance %s/%s: %w", cfg.Project, cfg.Instance, err)
	}
	return client{c, conns, cfg.Suffix}, nil
}

// Close closes the clients.
func (s *Store) Close() error {
	if r := s.tables.router; r != nil {
		return r.close()
	}
	err := s.client.Close()
	if s.separateServing {
		err = errors.Join(err, s.serving.Close())
	}
	if s.analysis != nil {
		err = errors.Join(err, s.analysis.Close())
	}
	return err
}

// bulk writes rows in requests of bounded size and fails if any row failed.
type bulk struct {
	ctx   context.Context
	table *bigtable.Table // of the waiting rows
	keys  []string
	muts  []*bigtable.Mutation
	bytes int
	// retry makes bulk retry failed writes. The client does not retry rows that carry
	// the server's time, but writing them twice is harmless.
	retry bool
	// refused takes the error of each row that Bigtable will not take. Without it such
	// an error ends the write.
	refused func(key string, err error)
}

func newBulk(ctx context.Context) *bulk { return &bulk{ctx: ctx} }

func (b *bulk) add(table *bigtable.Table, key string, m *bigtable.Mutation, size int) error {
	if table != b.table {
		if err := b.flush(); err != nil {
			return err
		}
		b.table = table
	}
	b.keys, b.muts, b.bytes = append(b.keys, key), append(b.muts, m), b.bytes+size+len(key)
	if len(b.keys) < bulkRows && b.bytes < bulkBytes {
		return nil
	}
	return b.flush()
}

func (b *bulk) flush() error {
	if !b.retry {
		return b.write()
	}
	return retryAtomic(b.ctx, b.write)
}

func (b *bulk) write() error {
	switch len(b.keys) {
	case 0:
		return nil
	case 1:
		if err := b.table.Apply(b.ctx, b.keys[0], b.muts[0]); err != nil && !b.refuse(0, err) {
			return fmt.Errorf("write row: %w", err)
		}
	default:
		errs, err := b.table.ApplyBulk(b.ctx, b.keys, b.muts)
		if err != nil && b.refused != nil && status.Code(err) == codes.InvalidArgument {
			errs, err = b.each(), nil // one row may be the reason
		}
		if err != nil {
			return fmt.Errorf("write %d rows: %w", len(b.keys), err)
		}
		for i, err := range errs {
			if err != nil && !b.refuse(i, err) {
				return fmt.Errorf("write row %q of %d: %w", b.keys[i], len(b.keys), err)
			}
		}
	}
	b.keys, b.muts, b.bytes = b.keys[:0], b.muts[:0], 0
	return nil
}

// each writes the rows one by one. It returns their errors.
func (b *bulk) each() []error {
	errs := make([]error, len(b.keys))
	for i := range b.keys {
		errs[i] = b.table.Apply(b.ctx, b.keys[i], b.muts[i])
	}
	return errs
}

// refuse reports whether an error means that Bigtable will never take a row.
func (b *bulk) refuse(i int, err error) bool {
	if b.refused == nil || status.Code(err) != codes.InvalidArgument {
		return false
	}
	b.refused(b.keys[i], err)
	return true
}

// retryAtomic runs a row transaction, and runs it again if its answer was lost. The
// client does not retry it, because it cannot know whether Bigtable applied the
// transaction. Callers here accept both: a ticket drawn twice leaves one number
// unused.
func retryAtomic(ctx context.Context, do func() error) error {
	backoff := 10 * time.Millisecond
	for attempt := 0; ; attempt++ {
		err := do()
		switch status.Code(err) {
		case codes.Unavailable, codes.Aborted, codes.DeadlineExceeded, codes.Internal:
		default:
			return err
		}
		if attempt == 4 || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(backoff):
			backoff *= 4
		}
	}
}
