package ingest

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/affinityengine/affinity/shared/app/config/kmscipher"
	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/backend/function"
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
}

// Backends are the services that the function uses.
type Backends struct {
	backend.Base
	Auth     *auth.Authenticator
	Bus      *pubsub.Bus
	Enricher *enrich.Enricher
	Refused  *refused.Recorder
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
		Enricher: enrich.New(base.Store.Catalog, base.CachedConfig), Refused: refusals}), nil
}
