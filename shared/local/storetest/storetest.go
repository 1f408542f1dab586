// Package storetest gives a test a store of its own: the real client on an
// in-process Bigtable, which is that of a local engine or that of Google's client
// library and holds its data in memory until the test ends, or on an emulator that
// already runs.
package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/affinityengine/affinity/shared/local/disk"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/rows"
	"github.com/affinityengine/affinity/shared/store"
)

// filterColumns suits the in-process Bigtable, which copies a row once for every
// column that it filters.
const filterColumns = 6

// New starts the Bigtable of a local engine, makes the tables and opens a store on
// them. It collects superseded cells when they are written. dial adds options to the
// store's connection, such as interceptors that make it fail.
func New(tb testing.TB, dial ...grpc.DialOption) *store.Store {
	tb.Helper()
	s, _ := NewWithClient(tb, dial...)
	return s
}

// NewWithClient is New with a client of the same Bigtable, for cells that no
// version of the store writes.
func NewWithClient(tb testing.TB, dial ...grpc.DialOption) (*store.Store, *bigtable.Client) {
	tb.Helper()
	return OpenAt(tb, onDisk(tb, Disk(tb)), dial...)
}

// NewDeployed is NewWithClient on the Bigtable of Google's client library, which
// collects superseded cells some time later, as the deployed one does.
func NewDeployed(tb testing.TB, dial ...grpc.DialOption) (*store.Store, *bigtable.Client) {
	tb.Helper()
	return OpenAt(tb, Start(tb), dial...)
}

// Start starts the Bigtable of NewDeployed without tables and returns its
// address, for OpenAt.
func Start(tb testing.TB) string {
	tb.Helper()
	return started(tb, emulator.StartBttest)
}

// StartStored starts the Bigtable of New on a folder of the test's own, and returns its
// address, for OpenAt.
func StartStored(tb testing.TB) string {
	tb.Helper()
	d, err := disk.Open(tb.TempDir(), rows.Join, slog.New(slog.DiscardHandler))
	must.Succeed(tb, err)
	must.CloseAtEnd(tb, d)
	return onDisk(tb, d)
}

// onDisk starts the Bigtable of a local engine.
func onDisk(tb testing.TB, d *disk.Disk) string {
	return started(tb, func(opts ...grpc.ServerOption) (*emulator.Bigtable, error) {
		return emulator.StartBigtable(d, opts...)
	})
}

// Disk returns a Disk in memory, for servers that keep their data on one.
func Disk(tb testing.TB) *disk.Disk {
	tb.Helper()
	d, err := disk.InMemory(rows.Join, slog.New(slog.DiscardHandler))
	must.Succeed(tb, err)
	must.CloseAtEnd(tb, d)
	return d
}

func started(tb testing.TB, start func(...grpc.ServerOption) (*emulator.Bigtable, error)) string {
	tb.Helper()
	server, err := start()
	must.Succeed(tb, err)
	tb.Cleanup(server.Close)
	return server.Addr
}

// OpenAt makes the tables in a new instance of the Bigtable emulator at addr and
// opens a store on them. Tests may share one emulator.
func OpenAt(tb testing.TB, addr string, dial ...grpc.DialOption) (*store.Store, *bigtable.Client) {
	tb.Helper()
	return OpenInstance(tb, addr, newInstance(), dial...)
}

func newInstance() string { return "test-" + strings.ToLower(rand.Text()) }

// OpenInstance is OpenAt of an instance that may have the tables, so that two processes can
// share it.
func OpenInstance(tb testing.TB, addr, instance string, dial ...grpc.DialOption) (*store.Store, *bigtable.Client) {
	tb.Helper()
	return open(tb, addr, store.Config{Instance: instance}, dial)
}

// Connected makes a store reach its Bigtable over a connection, for a test that measures what
// is sent. All other stores of tests call a Bigtable of their process directly; those of
// benchmarks do not.
type Connected struct{ grpc.EmptyDialOption }

// directly returns what makes a client call the Bigtable of this process without a connection.
func directly(tb testing.TB, dial []grpc.DialOption) []option.ClientOption {
	if _, measures := tb.(*testing.B); measures || slices.Contains(dial, grpc.DialOption(Connected{})) {
		return nil
	}
	return emulator.InProcessClient()
}

// open opens the instance and the app profiles of cfg.
func open(tb testing.TB, addr string, cfg store.Config, dial []grpc.DialOption) (*store.Store, *bigtable.Client) {
	tb.Helper()
	cfg.Project, cfg.FilterColumns, cfg.LocationSecret = "test", filterColumns, "secret"
	ctx := context.Background()
	opts := []option.ClientOption{option.WithEndpoint(addr), option.WithoutAuthentication(),
		option.WithGRPCConnectionPool(1), option.WithTelemetryDisabled(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials()))}
	direct := directly(tb, dial)
	plain := slices.Concat(opts, direct)
	admin, err := bigtable.NewAdminClient(ctx, cfg.Project, cfg.Instance, plain...)
	must.Succeed(tb, err)
	must.Succeed(tb, errors.Join(store.CreateTables(ctx, admin), admin.Close()))
	client, err := bigtable.NewClientWithConfig(ctx, cfg.Project, cfg.Instance,
		bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, plain...)
	must.Succeed(tb, err)
	for _, d := range dial {
		opts = append(opts, option.WithGRPCDialOption(d))
	}
	s, err := store.Open(ctx, cfg, append(opts, direct...)...)
	must.Succeed(tb, err)
	tb.Cleanup(func() {
		if err := errors.Join(client.Close(), s.Close()); err != nil {
			tb.Error(err)
		}
	})
	return s, client
}
