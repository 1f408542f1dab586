package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// Place says in which regions the rows of an app lie that belong to no user.
type Place struct {
	// Read is the region whose rows count.
	Read string
	// Write are the regions into which what clients change is written, in this order.
	Write []string
	// Users are the regions in which users of the app may be, if they are others than those of Write.
	Users []string
}

// router sends what is asked of a Store to those of the regions: a deployment has a Bigtable
// instance for each. A nil router is that of a Store of one.
type router struct {
	own     string // the region of the process
	home    *Store // that of own: holds what belongs to no app
	first   string // where apps live that name no region
	stores  map[string]*Store
	place   func(app string) (Place, error)
	nowhere *Store // fails every request
}

// Regional returns a store of several regions. It reads the rows of an app in the region
// where they count, and writes what clients change into all regions of its place. place
// should return quickly. If it fails, requests for the app fail with the code Unavailable.
//
// It is for the rows of an app that belong to no user, and for users while their app rests.
// profile.Join finds users while their app moves.
//
// home is the region of the process, and first the one in which apps live that name none.
// Close closes the stores of all regions.
func Regional(home, first string, stores map[string]*Store, place func(app string) (Place, error)) (*Store, error) {
	for _, region := range []string{home, first} {
		if stores[region] == nil {
			return nil, fmt.Errorf("no Bigtable instance for the region %q: there are %v", region,
				slices.Sorted(maps.Keys(stores)))
		}
	}
	for name, at := range stores {
		at.region = name
	}
	at := stores[home]
	nowhere, err := openNowhere()
	if err != nil {
		return nil, err
	}
	s := &Store{
		tables: tables{router: &router{home, at, first, stores, place, nowhere}}, separateServing: at.separateServing,
		filterColumns: at.filterColumns, meter: at.meter, log: at.log,
	}
	return s.view(), nil
}

// reads returns the store in which the rows of an app count.
func (r *router) reads(app string) *Store {
	if app == "" {
		return r.home
	}
	place, err := r.place(app)
	if s := r.stores[place.Read]; err == nil && s != nil {
		return s
	}
	return r.nowhere
}

// writes returns the stores into which changes of an app are written, in this order.
func (r *router) writes(app string) ([]*Store, error) {
	place, err := r.place(app)
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "the region of app %s is unknown: %v", app, err)
	}
	stores := make([]*Store, len(place.Write))
	for i, region := range place.Write {
		if stores[i] = r.stores[region]; stores[i] == nil {
			return nil, fmt.Errorf("this deployment has no region %q, in which app %s is", region, app)
		}
	}
	return stores, nil
}

// each calls do with the stores into which changes of an app are written, until it fails.
func (s *Store) each(app string, do func(*Store) error) error {
	if s.tables.router == nil {
		return do(s)
	}
	stores, err := s.tables.router.writes(app)
	if err != nil {
		return err
	}
	for _, at := range stores {
		if err := do(at); err != nil {
			return err
		}
	}
	return nil
}

// Home returns the name of the region of the process; empty for a store of one.
func (s *Store) Home() string {
	if s.tables.router == nil {
		return ""
	}
	return s.tables.router.own
}

// everywhere calls do with the stores of all regions in which users of an app may be, until it fails.
func (s *Store) everywhere(app string, do func(*Store) error) error {
	all := s.residences(app)
	if len(all) == 1 {
		return s.each(app, do)
	}
	for _, at := range all {
		if err := do(at); err != nil {
			return err
		}
	}
	return nil
}

// residences returns the stores of the regions in which users of an app live, if each has a region of their own; s
// alone otherwise.
func (s *Store) residences(app string) []*Store {
	if s.tables.router == nil {
		return []*Store{s}
	}
	place, err := s.tables.router.place(app)
	if err != nil || len(place.Users) == 0 {
		return []*Store{s}
	}
	all := make([]*Store, len(place.Users))
	for i, region := range place.Users {
		all[i] = s.In(region)
	}
	return all
}

// Regions returns the stores of all regions by name, and the name of the first one; nil
// for a store of one.
func (s *Store) Regions() (stores map[string]*Store, first string) {
	if s.tables.router == nil {
		return nil, ""
	}
	return s.tables.router.stores, s.tables.router.first
}

// In returns the store of one region, for rows that name users who live there. An empty name, and a store of one
// Bigtable, return s itself. The requests of a region that this deployment does not have fail.
func (s *Store) In(region string) *Store {
	if s.tables.router == nil || region == "" {
		return s
	}
	if at := s.tables.router.stores[region]; at != nil {
		return at
	}
	return s.tables.router.nowhere
}

// Region returns the name of the region whose store s is; empty for a store of one Bigtable, and for one of several
// regions.
func (s *Store) Region() string { return s.region }

// all calls do with the stores of all regions until it fails.
func (r *router) all(do func(*Store) error) error {
	for _, name := range slices.Sorted(maps.Keys(r.stores)) {
		if err := do(r.stores[name]); err != nil {
			return err
		}
	}
	return nil
}

// close closes the stores.
func (r *router) close() error {
	err := r.nowhere.Close()
	for _, s := range r.stores {
		err = errors.Join(err, s.Close())
	}
	return err
}

// pingTime is how long Open waits for an instance that it may do without.
const pingTime = 2 * time.Second

// Unreachable returns an option with which Open succeeds also if the instance does not answer.
// Requests fail then, until it does. So a process serves the apps of other regions.
func Unreachable(log *slog.Logger, instance string) option.ClientOption {
	var said sync.Once // each connection pings
	return option.WithGRPCDialOption(grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req,
		reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if !strings.HasSuffix(method, "/PingAndWarm") {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		within, cancel := context.WithTimeout(ctx, pingTime)
		defer cancel()
		if err := invoke(within, method, req, reply, cc, opts...); err != nil && ctx.Err() == nil {
			said.Do(func() {
				log.LogAttrs(ctx, slog.LevelWarn, "a Bigtable instance does not answer; requests for the apps of its "+
					"region fail until it does",
					slog.String("instance", instance), slog.Any("error", err))
			})
		}
		return ctx.Err()
	}))
}

// openNowhere returns a store whose requests fail. The connection is never used.
func openNowhere() (*Store, error) {
	lost := status.Error(codes.Unavailable, "the region of the app is unknown: its configuration cannot be read, "+
		"or names a region that this deployment does not have")
	// A connection of its own, because BIGTABLE_EMULATOR_HOST would lead any other one to the emulator.
	conn, err := grpc.NewClient("passthrough:///nowhere", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, lost }),
		grpc.WithChainUnaryInterceptor(func(_ context.Context, method string, _, _ any, _ *grpc.ClientConn,
			_ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
			if strings.HasSuffix(method, "/PingAndWarm") { // as Open does
				return nil
			}
			return lost
		}),
		grpc.WithChainStreamInterceptor(func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string,
			grpc.Streamer, ...grpc.CallOption) (grpc.ClientStream, error) {
			return nil, lost
		}))
	if err != nil {
		return nil, err
	}
	return Open(context.Background(), Config{Project: "-", Instance: "-"}, option.WithGRPCConn(conn),
		option.WithGRPCConnectionPool(1))
}
