package configtest

import (
	"context"

	"github.com/affinityengine/affinity/shared/app/config"
)

// Hooked returns s with a hook that runs before each read of an "app" or of a "key". A read
// whose hook fails returns that error. The hook may also count reads, or wait.
func Hooked(s *config.Store, hook func(ctx context.Context, read string) error) config.Source {
	return hooked{s, hook}
}

type hooked struct {
	*config.Store
	hook func(ctx context.Context, read string) error
}

func (h hooked) App(ctx context.Context, appID string) (config.App, error) {
	if err := h.hook(ctx, "app"); err != nil {
		return config.App{}, err
	}
	return h.Store.App(ctx, appID)
}

func (h hooked) Key(ctx context.Context, appID, hash string) (config.Key, error) {
	if err := h.hook(ctx, "key"); err != nil {
		return config.Key{}, err
	}
	return h.Store.Key(ctx, appID, hash)
}
