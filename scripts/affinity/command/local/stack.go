package local

import (
	"context"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// demoKey is the key of the app demo.
const demoKey = stack.DemoKey

// RunningStack is an engine in this process.
type RunningStack interface {
	URL() string                        // base URL of the public functions
	ConsoleLink(app, key string) string // opens the console once, within ten minutes
	Idle(context.Context) error         // waits until every accepted event counts
	Close() error                       // finishes the work under way and ends the engine
}

// Starter starts an engine in this process.
type Starter func(context.Context, Options) (RunningStack, error)

// configTTL is how long an engine on one machine caches its configuration. It is in the same
// process, so that reading it costs little. Jobs wait twice as long after a change before they begin.
const configTTL = 100 * time.Millisecond

// StartStack starts an engine. ctx bounds the start, not the life of the engine.
func StartStack(ctx context.Context, o Options) (RunningStack, error) {
	apps := make([]stack.App, len(o.Apps))
	for i, a := range o.Apps {
		apps[i] = stack.App{ID: a.ID, Key: a.Key}
	}
	identity := config.Identity{}
	if o.Links {
		identity = config.Identity{Mode: config.IdentityLink, Lookback: config.DefaultLookback, Since: config.Stamp(o.Now)}
	}
	s, err := stack.Start(ctx, stack.Options{
		Addr: o.Addr, Apps: apps, Now: o.Now, Clock: o.Clock, RetentionDays: o.RetentionDays, Layout: o.Layout,
		Identity: identity,
		Archive:  o.Archive, Warehouse: o.Warehouse,
		Data: o.Data, Sync: o.Sync, KeepRetention: o.Data != "" && o.KeepRetention,
		Origins: o.Origins, Hosts: o.Hosts, Forwarded: o.Forwarded, TLS: o.TLS, Admin: o.Admin,
		Backups:    o.Backups,
		Regions:    o.Regions,
		Tables:     o.Tables,
		PackWindow: o.PackWindow,
		Life:       o.RequestLimit, ConfigTTL: configTTL,
		Operator: o.Operator, Log: o.Log})
	if err != nil {
		return nil, err
	}
	return localStack{s}, nil
}

type localStack struct{ *stack.Stack }

func (s localStack) URL() string { return s.Stack.URL }

func (s localStack) ConsoleLink(app, key string) string {
	return s.Stack.ConsoleLink(stack.App{ID: app, Key: key})
}
