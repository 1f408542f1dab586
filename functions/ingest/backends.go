package ingest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/app/config/kmscipher"
	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/backend/function"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/intake/refused"
	"github.com/affinityengine/affinity/shared/queue/pubsub"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func init() { function.Register("Ingest", open) }

// Settings are the environment variables that the function reads.
type Settings struct {
	backend.Settings
	Auth    auth.Environment
	Parents kmscipher.Config
	Bus     pubsub.Config
	// PackWindow is how long a request may wait for others of its app, to be published with them.
	PackWindow time.Duration `env:"PACK_WINDOW" envDefault:"5ms"`
}

// Validate checks the settings.
func (s Settings) Validate() error {
	if s.PackWindow < 0 || s.PackWindow > bus.MaxWindow {
		return fmt.Errorf("PACK_WINDOW %s: must be 0s to %s", s.PackWindow, bus.MaxWindow)
	}
	return nil
}

// Backends are the services that the function uses.
type Backends struct {
	backend.Base
	Auth     *auth.Authenticator
	Bus      *pubsub.Bus
	Enricher *enrich.Enricher
	Refused  *refused.Recorder
	// PackWindow is Settings.PackWindow.
	PackWindow time.Duration
}

func open(ctx context.Context, log *slog.Logger, s Settings) (http.Handler, error) {
	o := backend.Start(ctx, log, s.Settings)
	messages := backend.Use(ctx, o, s.Bus, pubsub.Open)
	parents := backend.Get(ctx, o, o.CachedConfig, s.Parents, kmscipher.WithParents)
	if err := o.Err(); err != nil {
		return nil, err
	}
	base := o.Base
	refusals := refused.New(base.Buffered(), base.Now, log)
	function.AtExit(refusals.Flush)
	return New(Backends{Base: base, Auth: auth.New(parents, s.Auth, base.Usage.Key), Bus: messages,
		Enricher: enrich.New(base.Store.Catalog, base.CachedConfig), Refused: refusals, PackWindow: s.PackWindow}), nil
}
