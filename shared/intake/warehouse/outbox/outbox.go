// Package outbox publishes what analysts get: a row for each event after it was written to the log, and one for each
// deletion. It publishes at least once; who gets an error does all again later. A deployment without a warehouse has a
// nil Outbox, which does nothing. The package keeps no data.
package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/intake/warehouse"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/store"
)

// Topics take the rows. The errors leave open how many they have taken.
type Topics interface {
	// Those of users go to a region; empty: to that of the app.
	PublishEvents(ctx context.Context, app, region string, rows [][]byte) error
	PublishDeletion(ctx context.Context, app, region string, row []byte) error
	// PublishEverywhere publishes a deletion in all regions.
	PublishEverywhere(ctx context.Context, row []byte) error
}

// Users say what an Outbox asks of users: StatesOf their states, of which every deletion and opt-out that was answered
// before must be known, and RegionOf the region in which each lives; empty if all live in that of the app.
type Users interface {
	StatesOf(ctx context.Context, app string, users []string) (map[string]store.User, error)
	RegionOf(ctx context.Context, app, user string) (string, error)
}

// Outbox publishes rows. It is safe for concurrent use.
type Outbox struct {
	topics Topics
	users  Users
	now    func() time.Time
	log    *slog.Logger
}

// Over returns an Outbox, or nil if there are no topics.
func Over[T interface {
	Topics
	comparable
}](t T, users Users, now func() time.Time, log *slog.Logger) *Outbox {
	if t == *new(T) {
		return nil
	}
	return &Outbox{t, users, now, log}
}

// partBytes bounds the rows that are in memory at a time, but for one that is larger.
const partBytes = 256 << 10

// Events publishes events that are in the log. excluded says that some are of users who are deleted or have
// opted out, and are not in the log: these it leaves out. So it does with what counts for no purpose of the surface
// export. It does not keep the rows.
func (o *Outbox) Events(ctx context.Context, app config.App, events []store.LogEvent, excluded bool) error {
	if o == nil || len(events) == 0 {
		return nil
	}
	var states map[string]store.User
	judge := app.Purposes.Judge(consent.Export)
	if excluded || app.Purposes.On() {
		users := make([]string, len(events))
		for i := range events {
			users[i] = events[i].User
		}
		var err error
		if states, err = o.users.StatesOf(ctx, app.ID, users); err != nil {
			return err
		}
	}
	parts := map[string]*part{}
	for i := range events {
		e, state := &events[i], states[events[i].User]
		text, err := o.message(app.ID, e, state, judge.View(state.Consents))
		if err != nil { // publishing it again would end so again
			o.log.LogAttrs(ctx, slog.LevelError, "an event cannot be published to the warehouse", slog.String("app", app.ID),
				slog.Int64("time", e.Time), slog.String("id", e.ID), slog.Any("error", err))
			continue
		}
		if text == nil {
			continue
		}
		region, err := o.users.RegionOf(ctx, app.ID, e.User)
		if err != nil {
			return err
		}
		p := parts[region]
		if p == nil {
			p = &part{}
			parts[region] = p
		}
		if p.size+len(text) > partBytes && len(p.rows) > 0 {
			if err := o.topics.PublishEvents(ctx, app.ID, region, p.rows); err != nil {
				return err
			}
			*p = part{}
		}
		p.rows, p.size = append(p.rows, text), p.size+len(text)
	}
	for region, p := range parts {
		if err := o.topics.PublishEvents(ctx, app.ID, region, p.rows); err != nil {
			return err
		}
	}
	return nil
}

// message returns the row of an event, or nil if it does not count: by the view, or because its user, whose state is
// given, is deleted or has opted out.
func (o *Outbox) message(app string, e *store.LogEvent, state store.User, view *consent.View) ([]byte, error) {
	row, err := warehouse.EventOf(warehouse.Logged{App: app, Time: e.Time, ID: e.ID, Counts: e.Counts,
		Original: e.Original}, o.now())
	if err != nil {
		return nil, err
	}
	receipt := e.Receipt
	if receipt == 0 {
		receipt = row.ReceivedAt.UnixMilli()
	}
	kept := row.Limit(view)
	text, err := row.Message()
	if err != nil || !kept || state.Excludes(e.Type, e.Time, receipt) {
		return nil, err
	}
	return text, nil
}

// part is rows that are published together.
type part struct {
	rows [][]byte
	size int
}

// Deletion publishes what a user's deletions and opt-outs cover by now.
func (o *Outbox) Deletion(ctx context.Context, app, user string) error {
	if o == nil {
		return nil
	}
	states, err := o.users.StatesOf(ctx, app, []string{user})
	if err != nil {
		return err
	}
	return o.publish(ctx, app, user, states[user].Deleted())
}

// Withdrawal publishes that nothing of a user which t covers counts any more, because they have withdrawn a purpose of
// the surface export. What counts for others of these goes with it: rows do not say for what they count.
func (o *Outbox) Withdrawal(ctx context.Context, app, user string, t affinity.Tombstone) error {
	if o == nil {
		return nil
	}
	return o.publish(ctx, app, user, t)
}

func (o *Outbox) publish(ctx context.Context, app, user string, deleted affinity.Tombstone) error {
	if deleted.DeletedUntil == 0 {
		return nil // the row is gone, and with it what it covered
	}
	text, err := warehouse.DeletionOf(app, user, deleted, o.now()).Message()
	if err != nil {
		return err
	}
	region, err := o.users.RegionOf(ctx, app, user)
	if err != nil {
		return err
	}
	return o.topics.PublishDeletion(ctx, app, region, text)
}

// AppDeletion publishes that nothing of an app that was received until now counts.
func (o *Outbox) AppDeletion(ctx context.Context, app string) error {
	if o == nil {
		return nil
	}
	until := o.now().UnixMilli()
	text, err := warehouse.DeletionOf(app, "", affinity.Tombstone{DeletedUntil: until, ReceivedUntil: until},
		o.now()).Message()
	if err != nil {
		return err
	}
	return o.topics.PublishEverywhere(ctx, text)
}

// Documents are what a database holds below an app's document, for package deletion.
type Documents interface {
	Forget(ctx context.Context, app string) error
	Holding(ctx context.Context, app string, limit int) ([]string, error)
}

// Forgetting are documents of which Forget also publishes the deletion of the app. Package deletion calls it once no
// request writes any more.
type Forgetting struct {
	Documents
	Outbox *Outbox
}

// Forget publishes the deletion, and then deletes the documents.
func (f Forgetting) Forget(ctx context.Context, app string) error {
	if err := f.Outbox.AppDeletion(ctx, app); err != nil {
		return fmt.Errorf("publish the deletion of %s to the warehouse: %w", app, err)
	}
	return f.Documents.Forget(ctx, app)
}
