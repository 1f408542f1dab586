package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/affinityengine/affinity/shared/store"
)

const (
	instanceProject, instanceName = "bench", "bench"
	maxMessage                    = 256 << 20
)

// client holds all clients of a server. All count the received bytes. Each store has a
// connection of its own, because it decodes rows by interceptors of its connection.
type client struct {
	server  Server
	conn    *grpc.ClientConn
	traffic *traffic
	admin   *bigtable.AdminClient
	raw     *bigtable.Client
	// store has the server filter columns, whole receives all columns. Both write as
	// they do to Bigtable.
	store, whole *store.Store
	version      int64 // of the strategy; each recompute increments it
}

// sifted is a limit above the number of columns of any strategy here.
const sifted = 1 << 20

// openClient starts a server and creates the tables.
func openClient(ctx context.Context, start Starter) (*client, error) {
	return openClientOn(ctx, start, "")
}

// openClientOn is openClient with a server that keeps its data in a folder.
func openClientOn(ctx context.Context, start Starter, dir string) (*client, error) {
	server, err := start(ctx, dir)
	if err != nil {
		return nil, err
	}
	c := &client{server: server, traffic: &traffic{}}
	if err := c.open(ctx); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *client) open(ctx context.Context) (err error) {
	c.conn, err = grpc.NewClient(c.server.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(c.traffic),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return fmt.Errorf("connect to %s: %w", c.server.Addr, err)
	}
	opts := []option.ClientOption{option.WithGRPCConn(c.conn)}
	if c.admin, err = bigtable.NewAdminClient(ctx, instanceProject, instanceName, opts...); err != nil {
		return fmt.Errorf("open Bigtable administration: %w", err)
	}
	if err := c.createTables(ctx); err != nil {
		return err
	}
	c.raw, err = bigtable.NewClientWithConfig(ctx, instanceProject, instanceName,
		bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, opts...)
	if err != nil {
		return fmt.Errorf("open Bigtable: %w", err)
	}
	opts = []option.ClientOption{
		option.WithEndpoint(c.server.Addr), option.WithGRPCConnectionPool(1), option.WithoutAuthentication(),
		option.WithTelemetryDisabled(), // as a function opens it
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		option.WithGRPCDialOption(grpc.WithStatsHandler(c.traffic)),
	}
	cfg := store.Config{Project: instanceProject, Instance: instanceName}
	if c.whole, err = store.Open(ctx, cfg, opts...); err != nil {
		return err
	}
	cfg.FilterColumns = sifted
	c.store, err = store.Open(ctx, cfg, opts...)
	return err
}

// createTables creates the tables that are not there, without garbage collection, which would
// scan them during a measurement.
func (c *client) createTables(ctx context.Context) error {
	tables, err := store.Tables()
	if err != nil {
		return err
	}
	there, err := c.admin.Tables(ctx)
	if err != nil {
		return fmt.Errorf("list the tables: %w", err)
	}
	for _, t := range tables {
		if slices.Contains(there, t.Name) {
			continue
		}
		if err := c.admin.CreateTable(ctx, t.Name); err != nil {
			return fmt.Errorf("create table %s: %w", t.Name, err)
		}
		for _, f := range t.Families {
			if err := c.admin.CreateColumnFamily(ctx, t.Name, f.Name); err != nil {
				return fmt.Errorf("create family %s of table %s: %w", f.Name, t.Name, err)
			}
		}
	}
	return nil
}

// close ends the connections and the server.
func (c *client) close() error {
	var err error
	for _, s := range []*store.Store{c.store, c.whole} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	if c.conn != nil {
		err = errors.Join(err, c.conn.Close())
	}
	return errors.Join(err, c.server.Close())
}
