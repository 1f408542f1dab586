package store_test

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// loss loses the answers to row transactions and mutations, after they were
// executed.
type loss struct {
	left   atomic.Int64
	giveUp func() // if set, called with each
}

func (l *loss) dial() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if strings.HasSuffix(method, "Row") && l.left.Add(-1) >= 0 && err == nil {
			if l.giveUp != nil {
				l.giveUp()
			}
			return status.Error(codes.Unavailable, "answer lost by the test")
		}
		return err
	})
}

func TestLostAnswers(t *testing.T) {
	var inProcess, deployed loss
	s, client := storetest.NewWithClient(t, inProcess.dial())
	t.Run("InProcess", func(t *testing.T) { testLostAnswers(t, fixture{Store: s, client: client, collects: true}, &inProcess) })
	s, client = storetest.OpenAt(t, storetest.Start(t), deployed.dial())
	t.Run("AsDeployed", func(t *testing.T) { testLostAnswers(t, fixture{Store: s, client: client}, &deployed) })
}

func testLostAnswers(t *testing.T, s fixture, l *loss) {
	ctx := context.Background()
	l.left.Store(1)
	if row := ticket(t, s, "u"); row.Ticket != 2 {
		t.Errorf("ticket %d, want 2: ticket 1 was drawn, and its answer was lost", row.Ticket)
	}
	l.left.Store(1)
	if done, err := s.Users.SwapManifest(ctx, app, "u", history.OfVersion(0), manifest(5)); done || err != nil {
		t.Errorf("swap: %v, %v; want false: the store cannot know which attempt succeeded", done, err)
	}
	if row := read(t, s, "u"); !bytes.Equal(row.Manifest, manifest(5)) {
		t.Errorf("manifest %x, want version 5, which was swapped in", row.Manifest)
	}
	l.left.Store(1)
	// The ticket is still the newest: it is the fold's own manifest that is set
	// once more.
	if done, err := s.Users.CommitFold(ctx, app, "u", 2, manifest(6)); !done || err != nil {
		t.Errorf("commit: %v, %v; want true", done, err)
	}
	l.left.Store(1)
	if err := s.Users.ForgetUser(ctx, app, "u", 2, manifest(7)); err != nil {
		t.Errorf("a deletion is not tried again: %v", err)
	}
	if row := read(t, s, "u"); !bytes.Equal(row.Manifest, manifest(7)) || !row.HasProfile || row.Ticket != 2 {
		t.Errorf("%+v after the deletion", row)
	}
	for what, do := range map[string]func(context.Context) error{
		"swap": func(ctx context.Context) error {
			_, err := s.Users.SwapManifest(ctx, app, "w", history.OfVersion(0), manifest(8))
			return err
		},
		"commit": func(ctx context.Context) error {
			_, err := s.Users.CommitFold(ctx, app, "w", 2, manifest(8))
			return err
		},
		"ticket":   func(ctx context.Context) error { _, err := s.Users.TakeTicket(ctx, app, "w"); return err },
		"deletion": func(ctx context.Context) error { return s.Users.ForgetUser(ctx, app, "w", 2, manifest(8)) },
	} {
		ctx, cancel := context.WithCancel(context.Background())
		l.giveUp = cancel
		l.left.Store(1)
		if err := do(ctx); err == nil || !strings.Contains(err.Error(), "lost by the test") || !strings.Contains(err.Error(), app+",w") {
			t.Errorf("%s, given up: %v, want the fault and whose it is", what, err)
		}
		l.giveUp = nil
	}
}

// What others have put into the tables is an error that names the row.
func TestForeignRows(t *testing.T) {
	s, client := storetest.NewWithClient(t)
	ctx := context.Background()
	put := func(table, family, column, key string, value []byte) {
		t.Helper()
		m := bigtable.NewMutation()
		m.Set(family, column, 0, value)
		must.Succeed(t, client.Open(table).Apply(ctx, key, m))
	}
	ignore := func(store.BlockName, []byte) error { return nil }
	keys := func(store.BlockName) error { return nil }
	row := func(_ string, row store.LogRow) error { _, err := row.Event(); return err }
	put(store.TableHistories, "b", "b", "keys,u,7", nil)
	put(store.TableHistories, "b", "b", "tickets,u,x,0000", nil)
	put(store.TableHistories, "b", "b", "numbers,u,0000000000000001,z", nil)
	put(store.TableEvents, "e", "view,Seen", "columns,u,2020-01-01T00:00:00.000Z,id", nil)
	put(store.TableEvents, "m", "event", "columns,u,2020-01-01T00:00:00.000Z,id", nil)
	put(store.TableEvents, "e", "view,Seen,color", "counts,u,2020-01-01T00:00:00.000Z,id", []byte{9})
	put(store.TableEvents, "m", "event", "times,u,2020-01-01,id", nil)
	put(store.TableUsers, "u", "c", "counters,u,", []byte("short"))
	all := []store.UserRange{{User: "u", To: history.End}}
	for app, read := range map[string]func(app string) error{
		"keys":    func(app string) error { return s.Histories.ScanBlocks(ctx, app, "", "", ignore) },
		"tickets": func(app string) error { return s.Histories.ScanBlockKeys(ctx, app, "", "", keys) },
		"numbers": func(app string) error { _, err := s.Histories.ListBlocks(ctx, app, "u"); return err },
		"columns": func(app string) error { return s.Events.Log(app, schema.Default()).Read(ctx, all, row) },
		"counts":  func(app string) error { return s.Events.Log(app, schema.Default()).Read(ctx, all, row) },
		"times":   func(app string) error { return s.Events.Log(app, schema.Default()).Read(ctx, all, row) },
		"counters": func(app string) error {
			return s.Users.ScanUsers(ctx, app, "", "", 0, store.UserState, func(string, store.User) error { return nil })
		},
	} {
		if err := read(app); err == nil || !strings.Contains(err.Error(), `"`+app+",u,") {
			t.Errorf("%s: %v, want an error that names the row", app, err)
		}
	}
}

// The in-process Bigtable hands out rows that share a list of columns: a writer
// that takes a column out of it would have a reader miss another.
func TestWritersDoNotDisturbReaders(t *testing.T) {
	for name, write := range map[string]func(s *store.Store, row store.User, n int64) error{
		"profiles": func(s *store.Store, row store.User, n int64) error {
			row.Ticket = n
			return s.Users.WriteProfiles(context.Background(), app, []store.ProfileWrite{{User: "u", Row: row, Value: []byte("p"), Summary: []byte("s"), Version: row.Version}})
		},
		"deletions": func(s *store.Store, _ store.User, n int64) error {
			return s.Users.ForgetUser(context.Background(), app, "u", n, manifest(n))
		},
		"tombstones": func(s *store.Store, _ store.User, n int64) error {
			return s.Users.AdvanceTombstone(context.Background(), app, "u", affinity.Tombstone{DeletedUntil: n})
		},
		"swaps": func(s *store.Store, _ store.User, n int64) error {
			_, err := s.Users.SwapManifest(context.Background(), app, "u", history.OfVersion(n-2), manifest(n-1))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := storetest.NewWithClient(t)
			ctx, b := context.Background(), fixture{Store: s, client: client, collects: true}
			must.Succeed(t, s.Users.AdvanceTombstone(ctx, app, "u", affinity.Tombstone{DeletedUntil: 1}))
			ticket(t, b, "u")
			row := read(t, b, "u")
			must.Succeed(t, s.Users.WriteProfiles(ctx, app, []store.ProfileWrite{{User: "u", Row: row, Version: 1}}))
			written := make(chan struct{})
			go func() {
				defer close(written)
				for n := int64(2); n < 150; n++ {
					if err := write(s, row, n); err != nil {
						t.Error(err)
						return
					}
				}
			}()
			for reading := true; reading; {
				select {
				case <-written:
					reading = false
				default:
				}
				err := s.Users.ScanUsers(ctx, app, "", "", 0, store.UserSummary, func(_ string, row store.User) error {
					if row.DeletedUntil == 0 || row.Ticket != 1 || !row.HasProfile {
						t.Errorf("read %+v", row)
					}
					return nil
				})
				must.Succeed(t, err)
			}
		})
	}
}
