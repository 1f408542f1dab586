package profiles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/app/config/kmscipher"
	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/backend/function"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/queue/taskqueue"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func init() { function.Register("Profiles", open) }

// Settings are the environment variables that the function reads.
type Settings struct {
	backend.Settings
	Auth    auth.Environment
	Parents kmscipher.Config
	Queue   taskqueue.Config
	// DeletionSlack is how far the clocks of the machines that receive events may be ahead
	// of the clock of the one that deletes a user: a deletion also covers what is received
	// within this time after it.
	DeletionSlack time.Duration `env:"DELETION_SLACK" envDefault:"3s"`
}

// Backends are the services that the function uses.
type Backends struct {
	backend.Base
	Auth     *auth.Authenticator
	Queue    queue.Queue
	Profiles *profile.Engine
}

func open(ctx context.Context, log *slog.Logger, s Settings) (http.Handler, error) {
	o := backend.Start(ctx, log, s.Settings)
	tasks := backend.Use(ctx, o, s.Queue, taskqueue.Open)
	parents := backend.Get(ctx, o, o.CachedConfig, s.Parents, kmscipher.WithParents)
	if err := o.Err(); err != nil {
		return nil, err
	}
	base := o.Base
	profiles := profile.New(base.Store, base.Config, base.CachedConfig, base.Now, base.Log)
	profiles.SetSlack(s.DeletionSlack)
	return New(Backends{Base: base, Auth: auth.New(parents, s.Auth, base.Usage.Key), Queue: tasks,
		Profiles: profiles}), nil
}

// Validate checks the settings of the queue and of deletions.
func (s Settings) Validate() error {
	err := s.Queue.Validate()
	if s.DeletionSlack < profile.MinSlack || s.DeletionSlack > profile.MaxSlack {
		err = errors.Join(err, fmt.Errorf("DELETION_SLACK is %v, want %v to %v", s.DeletionSlack, profile.MinSlack,
			profile.MaxSlack))
	}
	return err
}
