package config

import (
	"context"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
)

var NewCachedAt = newCached

const (
	CachedKeys   = cachedKeys
	MaxStrangers = maxStrangers
)

// AgeVersions makes the versions of an app older by d.
func AgeVersions(ctx context.Context, s documents.Store, appID string, d time.Duration) error {
	all, err := s.Find(ctx, documents.Query{Collection: AppPath(appID) + "/strategies"})
	if err != nil {
		return err
	}
	for _, kept := range all {
		var v strategyDocument
		if err := kept.Decode(&v); err != nil {
			return err
		}
		if err := s.Commit(ctx, documents.Change(kept, documents.Fields{"createdAt": v.CreatedAt.Add(-d)})); err != nil {
			return err
		}
	}
	return nil
}
