package migration_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/jobtest"
)

// gate sends the requests to Bigtable through the gate of the current harness,
// and counts rows.
type gate struct {
	of atomic.Pointer[harness]
	traffic
}

func (g *gate) set(w *harness) { g.of.Store(w) }

func (g *gate) dial() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(g.unary), grpc.WithChainStreamInterceptor(g.stream)}
}

// ask returns the outcome of a request. The client's own requests, which keep
// its connections warm, are not gated.
func (g *gate) ask(ctx context.Context, method string) jobtest.Fault {
	method = method[strings.LastIndexByte(method, '/')+1:]
	w := g.of.Load()
	if w == nil || !strings.HasSuffix(method, "Row") && !strings.HasSuffix(method, "Rows") || w.Gate == nil {
		return jobtest.None
	}
	return w.Gate(ctx, method)
}

// errFault is an error after which the Bigtable client does not retry.
var errFault = status.Error(codes.FailedPrecondition, jobtest.ErrFault.Error())

func (g *gate) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	switch g.ask(ctx, method) {
	case jobtest.FailBefore:
		return errFault
	case jobtest.FailAfter:
		if err := invoke(ctx, method, req, reply, cc, opts...); err != nil {
			return err
		}
		return errFault
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

func (g *gate) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	fault := g.ask(ctx, method)
	if fault == jobtest.FailBefore {
		return nil, errFault
	}
	stream, err := open(ctx, desc, cc, method, opts...)
	if err == nil && fault == jobtest.FailAfter {
		return mute{stream}, nil
	}
	return &counted{ClientStream: stream, traffic: &g.traffic}, err
}

// traffic counts the rows of each table that were read and written in lists
// since the last scan of a log began.
type traffic struct {
	mu            sync.Mutex
	read, written map[string]int
	// after is called with the counts after every message.
	after func(read, written map[string]int)
}

// watch resets the counts.
func (t *traffic) watch(after func(read, written map[string]int)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read, t.written, t.after = map[string]int{}, map[string]int{}, after
}

func (t *traffic) count(of func() map[string]int, name string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.after == nil || name == "" {
		return
	}
	of()[name[strings.LastIndexByte(name, '/')+1:]] += n
	t.after(t.read, t.written)
}

func (t *traffic) begin(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if name = name[strings.LastIndexByte(name, '/')+1:]; name == wideTable || name == narrowTable {
		clear(t.read)
		clear(t.written)
	}
}

// counted is a stream whose rows are counted.
type counted struct {
	grpc.ClientStream
	*traffic
	table string
}

func (c *counted) SendMsg(msg any) error {
	switch req := msg.(type) {
	case *bigtablepb.ReadRowsRequest:
		if req.Filter.GetInterleave() == nil && req.Filter.GetChain() == nil { // otherwise it reads a profile
			c.table = req.TableName
			c.begin(req.TableName)
		}
	case *bigtablepb.MutateRowsRequest:
		c.count(func() map[string]int { return c.written }, req.TableName, len(req.Entries))
	}
	return c.ClientStream.SendMsg(msg)
}

func (c *counted) RecvMsg(msg any) error {
	err := c.ClientStream.RecvMsg(msg)
	if got, ok := msg.(*bigtablepb.ReadRowsResponse); ok && err == nil {
		n := 0
		for _, chunk := range got.Chunks {
			if chunk.GetCommitRow() {
				n++
			}
		}
		c.count(func() map[string]int { return c.read }, c.table, n)
	}
	return err
}

// mute is a stream whose request is served and whose response is lost.
type mute struct{ grpc.ClientStream }

func (m mute) RecvMsg(msg any) error {
	if err := m.ClientStream.RecvMsg(msg); err != nil {
		return err
	}
	return errFault
}

// gatedConfig is the configuration behind the gate.
type gatedConfig struct {
	*config.Store
	w *harness
}

func (g gatedConfig) App(ctx context.Context, id string) (a config.App, err error) {
	err = g.w.Call(ctx, "app", func() (err error) { a, err = g.Store.App(ctx, id); return err })
	return a, err
}

func (g gatedConfig) UpdateLog(ctx context.Context, id string, change func(*config.App) error) (a config.App, err error) {
	err = g.w.Call(ctx, "update log", func() (err error) { a, err = g.Store.UpdateLog(ctx, id, change); return err })
	return a, err
}

// process is a process that runs one attempt, and may die.
type process struct{ dead atomic.Bool }

type processKey struct{}

func begin(ctx context.Context) context.Context {
	return context.WithValue(ctx, processKey{}, &process{})
}

// alive returns None unless the process of the call has ended.
func alive(ctx context.Context) jobtest.Fault {
	if p, ok := ctx.Value(processKey{}).(*process); ok && p.dead.Load() {
		return jobtest.FailBefore
	}
	return jobtest.None
}

// dies ends the process of a call: its calls have no effect from here on.
func dies(ctx context.Context) jobtest.Fault {
	if p, ok := ctx.Value(processKey{}).(*process); ok {
		p.dead.Store(true)
	}
	return jobtest.FailBefore
}
