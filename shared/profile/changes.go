package profile

import (
	"context"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/store"
)

// maxListed is how much older an entry of the list of changes may be than its answer, and
// that of the write that it announces. store.CutAt allows for it.
const maxListed = 5 * time.Second

// changeList keeps the list of changes of apps with segments: the users whose profiles may
// say something else than before. Every writer lists its users before it acknowledges.
// A process that has read a profile before the write was answered then finds the user in
// the list since store.CutAt.
type changeList struct {
	*env
	mu sync.Mutex
	// listed are the users, by app, whom the process has listed in the slot.
	slot   store.ChangeSlot
	listed map[appUser]bool
}

type appUser struct{ app, user string }

// listing is the list of changes for users whose profiles are about to be written. nil
// is that of an app without segments.
type listing struct {
	*changeList
	app  config.App
	at   time.Time // of the entries
	done chan struct{}
	err  error
}

// begin lists users, who have drawn their tickets, while their histories are read.
func (c *changeList) begin(ctx context.Context, app config.App, users []*user) *listing {
	if !app.Segments.On() {
		return nil
	}
	l := &listing{changeList: c, app: app, at: c.now(), done: make(chan struct{})}
	tokens := make([]string, len(users))
	for i, u := range users {
		tokens[i] = u.token
	}
	go func() {
		defer close(l.done)
		l.err = c.listAt(ctx, app, l.at, tokens)
	}()
	return l
}

// wait waits until the users are listed. Call it before their profiles are written.
func (l *listing) wait() error {
	if l == nil {
		return nil
	}
	<-l.done
	return l.err
}

// written lists users again if the write of their profiles, which has been answered, has
// taken too long.
func (l *listing) written(ctx context.Context, users ...string) error {
	if l == nil {
		return nil
	}
	return l.until(ctx, l.app, l.at, users)
}

// list lists users after a change of their profiles.
func (c *changeList) list(ctx context.Context, app config.App, users ...string) error {
	if !app.Segments.On() {
		return nil
	}
	at := c.now()
	if err := c.listAt(ctx, app, at, users); err != nil {
		return err
	}
	return c.until(ctx, app, at, users)
}

// until lists users again until an entry is answered in time. at is the time of the last.
func (c *changeList) until(ctx context.Context, app config.App, at time.Time, users []string) error {
	for c.now().Sub(at) > maxListed {
		at = c.now()
		if err := c.listAt(ctx, app, at, users); err != nil {
			return err
		}
	}
	return nil
}

// listAt lists those users whom the process has not yet listed in the slot of an instant.
// While both regions hold the app, it lists them in both, because either may be that of a
// process which asks.
func (c *changeList) listAt(ctx context.Context, app config.App, at time.Time, users []string) error {
	slot := store.SlotOf(at)
	missing := c.missing(app.ID, slot, users)
	if len(missing) == 0 {
		return nil
	}
	if err := c.store.Changes.Add(ctx, app.ID, slot, missing); err != nil {
		return err
	}
	if len(app.Place().Write) > 1 {
		other, err := c.other(app)
		if err != nil {
			return err
		}
		if err := other.env.store.Changes.Add(ctx, app.ID, slot, missing); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, user := range missing {
		if c.slot == slot {
			c.listed[appUser{app.ID, user}] = true
		}
	}
	return nil
}

// missing returns the users whom the process has not listed in a slot. It remembers those
// of one slot, the latest.
func (c *changeList) missing(appID string, slot store.ChangeSlot, users []string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slot < c.slot {
		return users
	}
	if slot > c.slot || c.listed == nil {
		c.slot, c.listed = slot, map[appUser]bool{}
	}
	var missing []string
	for _, user := range users {
		if !c.listed[appUser{appID, user}] {
			missing = append(missing, user)
		}
	}
	return missing
}
