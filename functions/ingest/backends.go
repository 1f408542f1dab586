package ingest

import (
	"context"
	"errors"
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
	base, err := backend.Open(ctx, log, s.Settings)
	if err != nil {
		return nil, err
	}
	parents, err := kmscipher.WithParents(ctx, base.CachedConfig, s.Parents)
	if err != nil {
		return nil, errors.Join(err, base.Close())
	}
	s.Bus.Where = base.RegionOf
	messages, err := pubsub.Open(ctx, s.Bus)
	if err != nil {
		return nil, errors.Join(err, base.Close())
	}
	refusals := refused.New(base.Buffered(), base.Now, log)
	function.AtExit(refusals.Flush)
	return New(Backends{Base: base, Auth: auth.New(parents, s.Auth).Note(base.Usage.Key), Bus: messages, Enricher: enrich.New(base.Store, base.CachedConfig), Refused: refusals}), nil
}
