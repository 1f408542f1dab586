package catalog

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/function"
)

func init() { function.Register("Catalog", open) }

// Settings are the environment variables that the function reads.
type Settings struct {
	backend.Settings
	Auth auth.Environment
}

// Backends are the services that the function uses.
type Backends struct {
	backend.Base
	Auth *auth.Authenticator
}

func open(ctx context.Context, log *slog.Logger, s Settings) (http.Handler, error) {
	base, err := backend.Open(ctx, log, s.Settings)
	if err != nil {
		return nil, err
	}
	return New(Backends{Base: base, Auth: auth.New(base.CachedConfig, s.Auth).Note(base.Usage.Key)}), nil
}
