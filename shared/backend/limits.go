package backend

import (
	"context"
	"fmt"

	"github.com/affinityengine/affinity/shared/app/limit"
)

// Charge counts n more of a kind for a request that its app's limit let through.
// The limit then waits until they are paid for.
func (b Base) Charge(ctx context.Context, appID string, k limit.Kind, n int) error {
	numbers, err := b.CachedConfig.Limits(ctx, appID)
	if err != nil {
		return fmt.Errorf("read the limits of %s: %w", appID, err)
	}
	b.Limits.Charge(appID, numbers, k, n)
	return nil
}
