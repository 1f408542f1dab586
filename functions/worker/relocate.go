package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/job/tasks/relocate"
	"github.com/affinityengine/affinity/shared/profile"
)

// relocateTime is how long a task copies the log of a user. The queue tries again, and the next attempt goes on.
const relocateTime = 8 * time.Minute

// relocated says where a user lives, and whether other regions hold something of them still.
type relocated struct {
	Region string `json:"region"`
	Clean  bool   `json:"clean"`
}

// relocate goes on with the move of a user, and then removes what they have left, as soon as nobody can use it any
// more.
func (h handler) relocate(ctx context.Context, request relocate.Request, _ int) (relocated, error) {
	app, err := h.Config.App(ctx, request.App)
	if err != nil {
		return relocated{}, gone(err)
	}
	residents := profile.ResidentsOf(h.Profiles)
	if request.To != "" {
		err := residents.Move(ctx, app, request.User, request.To, h.Now().Add(relocateTime))
		if refused, ok := errors.AsType[profile.ResidenceRefused](err); ok {
			return relocated{}, fmt.Errorf("%w: %w", errGone, refused) // the setting has changed
		}
		if err != nil {
			return relocated{}, err
		}
	}
	var at relocated
	if at.Region, err = residents.Region(ctx, app, request.User); err != nil {
		return at, err
	}
	if at.Clean, err = residents.CleanAll(ctx, app, request.User, h.Settle()); err != nil || at.Clean {
		return at, err
	}
	if next, more := request.Next(); more {
		err = relocate.Enqueue(ctx, h.Queue, at.Region, next, 2*h.Settle())
	}
	return at, err
}
