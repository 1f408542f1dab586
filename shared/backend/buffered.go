package backend

import (
	"context"
	"errors"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/store"
)

// Buffered are the tables that a process writes some time after the requests: usage,
// refusals, recent events and rates. An idle instance may do so hours later. Of an app that has
// been deleted in the meantime it writes nothing.
type Buffered struct {
	store  *store.Store
	config *config.Cached
}

// deletedTimeout is how long a write waits to learn whether its app still exists.
// Afterwards it is made, so that it does not depend on Firestore.
const deletedTimeout = time.Second

func (b Buffered) deleted(ctx context.Context, app string) bool {
	ctx, cancel := context.WithTimeout(ctx, deletedTimeout)
	defer cancel()
	_, err := b.config.App(ctx, app)
	return errors.Is(err, config.ErrNotFound)
}

// AddUsage is that of the Store.
func (b Buffered) AddUsage(ctx context.Context, batch usage.Batch) error {
	if b.deleted(ctx, batch.App) {
		return nil
	}
	return b.store.Usage.AddUsage(ctx, batch)
}

// KnownNames is that of the Store.
func (b Buffered) KnownNames(ctx context.Context, app string, day usage.Day, shard int) (usage.Names, error) {
	return b.store.Usage.KnownNames(ctx, app, day, shard)
}

// PutHotUsers is that of the Store.
func (b Buffered) PutHotUsers(ctx context.Context, app string, day usage.Day, shard int, process string,
	users []usage.User) error {
	if b.deleted(ctx, app) {
		return nil
	}
	return b.store.Usage.PutHotUsers(ctx, app, day, shard, process, users)
}

// Deleted is that of the Store.
func (b Buffered) Deleted(ctx context.Context, app string, users []usage.User) (map[string]time.Time, error) {
	return b.store.Usage.Deleted(ctx, app, users)
}

// PutKeyDays is that of the Store.
func (b Buffered) PutKeyDays(ctx context.Context, app string, days map[string]usage.Day) error {
	if b.deleted(ctx, app) {
		return nil
	}
	return b.store.Usage.PutKeyDays(ctx, app, days)
}

// RecordRefused is that of the Store.
func (b Buffered) RecordRefused(ctx context.Context, app string, at time.Time, r store.Refusals) error {
	if b.deleted(ctx, app) {
		return nil
	}
	return b.store.Refused.RecordRefused(ctx, app, at, r)
}

// RecordRefusedLinks is that of the Store.
func (b Buffered) RecordRefusedLinks(ctx context.Context, app string, at time.Time, r store.Refusals) error {
	if b.deleted(ctx, app) {
		return nil
	}
	return b.store.Refused.RecordRefusedLinks(ctx, app, at, r)
}

// AddRecent is that of the Store.
func (b Buffered) AddRecent(ctx context.Context, app string, events []store.RecentEvent) error {
	if b.deleted(ctx, app) {
		return nil
	}
	return b.store.Recent.AddRecent(ctx, app, events)
}

// DropRecent is that of the Store.
func (b Buffered) DropRecent(ctx context.Context, app string, now time.Time) error {
	return b.store.Recent.DropRecent(ctx, app, now)
}

// ExchangeRates is that of the Store.
func (b Buffered) ExchangeRates(ctx context.Context, app, process string, said []byte) (map[string][]byte, error) {
	if b.deleted(ctx, app) {
		return nil, nil
	}
	return b.store.Rates.ExchangeRates(ctx, app, process, said)
}
