// Package configdb keeps the configuration in Firestore: it is the config.Store
// of a deployment. It is separate from package config so that the types of the
// configuration can be used without linking Firestore.
//
// These are its documents and their fields:
//
//	apps/{app}                       id, retentionDays, strategy, strategyVersion, createdAt, changedAt, keysChangedAt,
//	                                 scoringVersion, ranking,
//	                                 limits {eventsPerSecond, importsPerSecond, readsPerSecond, jobsPerHour, strategiesPerHour, userEventsPerDay, writeWindowMs},
//	                                 privateFacets, numericBands, dates, feedVersion, segmentsSince,
//	                                 log {write, read, encoding, generation}, move {id, from, to, phase, job, backfill, rate, undone, startedAt}
//	apps/{app}/keys/{hash}           hash, acl, createdAt, name, description, validUntil, indexes, referers, addressRate,
//	                                 parent
//	apps/{app}/strategies/{version}  version, strategy, createdAt, scoringVersion, ranking
//	apps/{app}/indexes/{index}       index, attributesForFaceting, numericBands, bandsVersion, version
//	apps/{app}/feeds/{name}          name, version, index, date, definition
//	apps/{app}/savedSegments/{name}  name, where, setAt
//	deletions/{app}                  id, startedAt, attempt, endedAt, reusableFrom, rows
//
// A deleted app has its document in deletions and none in apps. The collections below
// its former document remain until the job of its deletion deletes them.
//
// A key is stored as its hex SHA-256, and a parent of secured keys also as its
// encrypted text. A key without an attribute lacks the field. A strategy is stored as one JSON
// string without its ranking, which is another one: as a map, each of its aliases would be indexed, and names that are not
// field paths would need escaping. strategyVersion is 0 and strategy is empty
// until a strategy is set. Versions count from 1, and none is used twice.
// SetStrategy deletes those that need not be kept any more.
//
// privateFacets is one JSON string, too, with the lists by index, and so are numericBands,
// also those of an index, and dates, with the attributes that feeds order by. Those of the
// app are fields of the app. A definition is one JSON string as well.
//
// An app has move once its log has been migrated.
//
// A document's id is the name itself, escaped where Firestore would refuse it,
// so every document also holds its name. The fields strategy, privateFacets,
// numericBands, dates, definition, where and attributesForFaceting are never queried and need no index.
package configdb

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/app/limit"
)

// maxAttempts is how often a change is tried while it conflicts with others. The
// client's own 5 attempts are too few when many callers change one app at once.
const maxAttempts = 20

type store struct {
	client *firestore.Client
	log    *slog.Logger
}

// New returns the Store that keeps the configuration in the client's database.
// It caches nothing and does not close the client. It logs faults that it does
// not return.
func New(client *firestore.Client, log *slog.Logger) config.Store {
	return &store{client, log}
}

// AppDocument returns the reference of an app's document. Other packages keep
// their collections of the app below it. The id must be valid.
func AppDocument(client *firestore.Client, appID string) *firestore.DocumentRef {
	return client.Collection("apps").Doc(documents.ID(appID))
}

func (s *store) appRef(appID string) *firestore.DocumentRef {
	return AppDocument(s.client, appID)
}

func (s *store) keyRef(appID, hash string) *firestore.DocumentRef {
	return s.appRef(appID).Collection("keys").Doc(documents.ID(hash))
}

func (s *store) strategyRef(appID string, version int64) *firestore.DocumentRef {
	return s.strategies(appID).Doc(strconv.FormatInt(version, 10))
}

func (s *store) strategies(appID string) *firestore.CollectionRef {
	return s.appRef(appID).Collection("strategies")
}

func (s *store) indexRef(appID, index string) *firestore.DocumentRef {
	return s.appRef(appID).Collection("indexes").Doc(documents.ID(index))
}

// read reads a document and decodes it.
func read(ctx context.Context, ref *firestore.DocumentRef, document any) error {
	snapshot, err := ref.Get(ctx)
	return into(document, snapshot, err)
}

// mustExist returns ErrNotFound if the app does not exist.
func (s *store) mustExist(ctx context.Context, appID string) error {
	return read(ctx, s.appRef(appID), new(appDocument))
}

// named replaces an error with that gRPC code by name.
func named(err error, code codes.Code, name error) error {
	if status.Code(err) == code {
		return name
	}
	return err
}

func (s *store) App(ctx context.Context, appID string) (config.App, error) {
	var d appDocument
	if err := read(ctx, s.appRef(appID), &d); err != nil {
		return config.App{}, fmt.Errorf("read app %q: %w", appID, err)
	}
	app, err := d.app()
	if err != nil {
		return config.App{}, fmt.Errorf("read app %q: %w", appID, err)
	}
	return app, nil
}

func (s *store) Apps(ctx context.Context) ([]string, error) {
	documents, err := s.client.Collection("apps").Select("id").Documents(ctx).GetAll()
	if err != nil {
		return nil, fmt.Errorf("list apps: %w", err)
	}
	ids := make([]string, len(documents))
	for i, document := range documents {
		var d appDocument
		if err := document.DataTo(&d); err != nil {
			return nil, fmt.Errorf("list apps: document %s: %w", document.Ref.ID, err)
		}
		ids[i] = d.ID
	}
	slices.Sort(ids)
	return ids, nil
}

func (s *store) CreateApp(ctx context.Context, app config.App) error {
	app, err := app.Prepare()
	if err != nil {
		return fmt.Errorf("create app: %w", err)
	}
	d := appDocument{ID: app.ID, RetentionDays: app.RetentionDays, CreatedAt: app.CreatedAt, ChangedAt: app.ChangedAt, Limits: newLimitsDocument(app.Limits), Log: logDocument(app.Log), Region: app.Region}
	if err := s.createApp(ctx, app.ID, d); err != nil {
		return fmt.Errorf("create app %q: %w", app.ID, named(err, codes.AlreadyExists, config.ErrExists))
	}
	return nil
}

func (s *store) SetRetention(ctx context.Context, appID string, days int) error {
	if err := config.CheckRetention(days); err != nil {
		return err
	}
	if _, err := s.appRef(appID).Update(ctx, []firestore.Update{
		{Path: "retentionDays", Value: days}, changedNow,
	}); err != nil {
		return fmt.Errorf("set retention of app %q: %w", appID, named(err, codes.NotFound, config.ErrNotFound))
	}
	return nil
}

func (s *store) SetConsistency(ctx context.Context, appID string, c config.Consistency) error {
	if _, err := config.ParseConsistency(string(c)); err != nil {
		return err
	}
	if _, err := s.appRef(appID).Update(ctx, []firestore.Update{{Path: "consistency", Value: string(c)}}); err != nil {
		return fmt.Errorf("set consistency of app %q: %w", appID, named(err, codes.NotFound, config.ErrNotFound))
	}
	return nil
}

func (s *store) SetBrowserRanking(ctx context.Context, appID string, on bool) error {
	if _, err := s.appRef(appID).Update(ctx, []firestore.Update{{Path: "browserRanking", Value: on}}); err != nil {
		return fmt.Errorf("set browser ranking of app %q: %w", appID, named(err, codes.NotFound, config.ErrNotFound))
	}
	return nil
}

func (s *store) SetLimits(ctx context.Context, appID string, n limit.Numbers) error {
	if err := n.Check(); err != nil {
		return err
	}
	var stored any = firestore.Delete
	if d := newLimitsDocument(n); d != nil {
		stored = d
	}
	if _, err := s.appRef(appID).Update(ctx, []firestore.Update{{Path: "limits", Value: stored}}); err != nil {
		return fmt.Errorf("set limits of app %q: %w", appID, named(err, codes.NotFound, config.ErrNotFound))
	}
	return nil
}

// newLimitsDocument returns nil if all limits are the defaults.
func newLimitsDocument(n limit.Numbers) *limitsDocument {
	if n == (limit.Numbers{}) {
		return nil
	}
	d := limitsDocument(n)
	return &d
}

func (s *store) UpdateLog(ctx context.Context, appID string, change func(*config.App) error) (config.App, error) {
	app, err := s.updateApp(ctx, appID, func(old config.App) (config.App, []firestore.Update, error) {
		app, changed, err := old.WithLog(change)
		if err != nil || !changed {
			return app, nil, err
		}
		var stored any = migrationDocument(app.Migration)
		if app.Migration == (config.Migration{}) {
			stored = firestore.Delete
		}
		return app, []firestore.Update{{Path: "log", Value: logDocument(app.Log)}, {Path: "migration", Value: stored}}, nil
	})
	if err != nil {
		return config.App{}, fmt.Errorf("change log of app %q: %w", appID, err)
	}
	return app, nil
}

func (s *store) UpdateMove(ctx context.Context, appID string, change func(*config.App) error) (config.App, error) {
	app, err := s.updateApp(ctx, appID, func(old config.App) (config.App, []firestore.Update, error) {
		app, changed, err := old.WithMove(change)
		if err != nil || !changed {
			return app, nil, err
		}
		move := moveDocument(app.Move)
		if !app.Move.ChangedAt.Equal(old.Move.ChangedAt) {
			move.ChangedAt = time.Time{}
		}
		var stored any = move
		if app.Move == (config.Move{}) {
			stored = firestore.Delete
		}
		return app, []firestore.Update{{Path: "region", Value: app.Region}, {Path: "move", Value: stored}}, nil
	})
	if err != nil {
		return config.App{}, fmt.Errorf("change region of app %q: %w", appID, err)
	}
	return app, nil
}

// updateApp makes the updates of an app that change leads to, as a compare-and-set: if
// another caller changes the app first, it calls change again. Without updates it changes
// nothing.
func (s *store) updateApp(ctx context.Context, appID string,
	change func(old config.App) (config.App, []firestore.Update, error)) (app config.App, err error) {
	backoff := gax.Backoff{Initial: 10 * time.Millisecond, Max: time.Second}
	for attempt := 1; ; attempt++ {
		var conflict bool
		if app, conflict, err = s.tryUpdateApp(ctx, appID, change); err == nil {
			return app, nil
		}
		if conflict && attempt < maxAttempts {
			err = gax.Sleep(ctx, backoff.Pause())
		}
		if err != nil {
			return config.App{}, err
		}
	}
}

// tryUpdateApp makes updates if no other caller changes the app at the same time, and
// reports whether it failed because one did. It takes no lock, like trySetStrategy.
func (s *store) tryUpdateApp(ctx context.Context, appID string,
	change func(old config.App) (config.App, []firestore.Update, error)) (app config.App, conflict bool, err error) {
	snapshot, old, err := s.readApp(ctx, appID)
	if err != nil {
		return config.App{}, false, err
	}
	app, updates, err := change(old)
	if err != nil || len(updates) == 0 {
		return app, false, err
	}
	if !app.ChangedAt.Equal(old.ChangedAt) {
		updates = append(updates, changedNow)
	}
	if _, err = s.appRef(appID).Update(ctx, updates, firestore.LastUpdateTime(snapshot.UpdateTime)); err != nil {
		return config.App{}, overtaken(err), err
	}
	app, err = s.App(ctx, appID)
	return app, false, err
}

// changedNow sets changedAt by Firestore's clock when the change is committed. A
// slow writer's own time could be in the past by then, and a job that waits for
// the change to propagate would start too early.
var changedNow = firestore.Update{Path: "changedAt", Value: firestore.ServerTimestamp}

// overtaken reports whether a change failed because another one came first.
func overtaken(err error) bool {
	switch status.Code(err) {
	case codes.Aborted, codes.AlreadyExists, codes.FailedPrecondition:
		return true
	}
	return false
}

// retryOvertaken tries a change again while others come first, up to maxAttempts times.
func retryOvertaken(ctx context.Context, try func() error) error {
	backoff := gax.Backoff{Initial: 10 * time.Millisecond, Max: time.Second}
	for attempt := 1; ; attempt++ {
		err := try()
		if !overtaken(err) || attempt == maxAttempts {
			return err
		}
		if err := gax.Sleep(ctx, backoff.Pause()); err != nil {
			return err
		}
	}
}

// readApp reads an app, and the document that a change of it goes by.
func (s *store) readApp(ctx context.Context, appID string) (*firestore.DocumentSnapshot, config.App, error) {
	snapshot, err := s.appRef(appID).Get(ctx)
	var d appDocument
	if err := into(&d, snapshot, err); err != nil {
		return nil, config.App{}, err
	}
	app, err := d.app()
	return snapshot, app, err
}
