package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/strategy"
)

// maxAttempts bounds the tries of a change that others get in the way of. The
// client's own 5 are too few where many change one app at once.
const maxAttempts = 20

// firestoreStore keeps the configuration in Firestore.
type firestoreStore struct {
	client *firestore.Client
}

var _ Store = (*firestoreStore)(nil)

// NewFirestore returns the store that lies in the client's database. It keeps
// nothing in memory and does not close the client.
func NewFirestore(client *firestore.Client) Store {
	return &firestoreStore{client}
}

// AppDocument is where an app lies in the client's database, and under it what
// other packages keep of the app. The id must be valid.
func AppDocument(client *firestore.Client, appID string) *firestore.DocumentRef {
	return client.Collection("apps").Doc(documentID(appID))
}

func (s *firestoreStore) appRef(appID string) *firestore.DocumentRef {
	return AppDocument(s.client, appID)
}

func (s *firestoreStore) keyRef(appID, hash string) *firestore.DocumentRef {
	return s.appRef(appID).Collection("keys").Doc(documentID(hash))
}

func (s *firestoreStore) strategyRef(appID string, version int64) *firestore.DocumentRef {
	return s.appRef(appID).Collection("strategies").Doc(strconv.FormatInt(version, 10))
}

func (s *firestoreStore) indexRef(appID, index string) *firestore.DocumentRef {
	return s.appRef(appID).Collection("indexes").Doc(documentID(index))
}

// read decodes a document.
func read(ctx context.Context, ref *firestore.DocumentRef, document any) error {
	snapshot, err := ref.Get(ctx)
	return into(document, snapshot, err)
}

// mustExist returns ErrNotFound without the app. Apps are never deleted, so it
// holds for as long as it matters.
func (s *firestoreStore) mustExist(ctx context.Context, appID string) error {
	return read(ctx, s.appRef(appID), new(appDocument))
}

// named makes the plain error of a failed precondition a named one.
func named(err error, code codes.Code, name error) error {
	if status.Code(err) == code {
		return name
	}
	return err
}

func (s *firestoreStore) App(ctx context.Context, appID string) (App, error) {
	var d appDocument
	if err := read(ctx, s.appRef(appID), &d); err != nil {
		return App{}, fmt.Errorf("read app %q: %w", appID, err)
	}
	app, err := d.app()
	if err != nil {
		return App{}, fmt.Errorf("read app %q: %w", appID, err)
	}
	return app, nil
}

func (s *firestoreStore) Apps(ctx context.Context) ([]string, error) {
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

func (s *firestoreStore) CreateApp(ctx context.Context, app App) error {
	app, err := app.prepared()
	if err != nil {
		return fmt.Errorf("create app: %w", err)
	}
	layout := logDocument(app.Log)
	d := appDocument{ID: app.ID, RetentionDays: app.RetentionDays, CreatedAt: app.CreatedAt, ChangedAt: app.ChangedAt, Log: &layout}
	if _, err := s.appRef(app.ID).Create(ctx, d); err != nil {
		return fmt.Errorf("create app %q: %w", app.ID, named(err, codes.AlreadyExists, ErrExists))
	}
	return nil
}

func (s *firestoreStore) SetRetention(ctx context.Context, appID string, days int) error {
	if err := checkRetention(days); err != nil {
		return err
	}
	if _, err := s.appRef(appID).Update(ctx, []firestore.Update{
		{Path: "retentionDays", Value: days}, changedNow,
	}); err != nil {
		return fmt.Errorf("set retention of app %q: %w", appID, named(err, codes.NotFound, ErrNotFound))
	}
	return nil
}

func (s *firestoreStore) UpdateLog(ctx context.Context, appID string, change func(*App) error) (App, error) {
	var app App
	backoff := gax.Backoff{Initial: 10 * time.Millisecond, Max: time.Second}
	for attempt := 1; ; attempt++ {
		var again bool
		var err error
		if app, again, err = s.tryUpdateLog(ctx, appID, change); err == nil {
			return app, nil
		}
		if again && attempt < maxAttempts {
			err = gax.Sleep(ctx, backoff.Pause())
		}
		if err != nil {
			return App{}, fmt.Errorf("change log of app %q: %w", appID, err)
		}
	}
}

// tryUpdateLog changes the log unless somebody changes the app meanwhile, and
// says whether that is why it failed. It holds no lock, as trySetStrategy.
func (s *firestoreStore) tryUpdateLog(ctx context.Context, appID string, change func(*App) error) (app App, again bool, err error) {
	snapshot, err := s.appRef(appID).Get(ctx)
	var d appDocument
	if err := into(&d, snapshot, err); err != nil {
		return App{}, false, err
	}
	old, err := d.app()
	if err != nil {
		return App{}, false, err
	}
	app, changed, err := old.withLog(change)
	if err != nil || !changed {
		return app, false, err
	}
	var move any = moveDocument(app.Move)
	if app.Move == (Move{}) {
		move = firestore.Delete
	}
	updates := []firestore.Update{{Path: "log", Value: logDocument(app.Log)}, {Path: "move", Value: move}}
	if !app.ChangedAt.Equal(old.ChangedAt) {
		updates = append(updates, changedNow)
	}
	if _, err = s.appRef(appID).Update(ctx, updates, firestore.LastUpdateTime(snapshot.UpdateTime)); err != nil {
		return App{}, overtaken(err), err
	}
	app, err = s.App(ctx, appID)
	return app, false, err
}

// changedNow sets when the app was changed by Firestore's clock, at the moment when
// it is: a writer that was held up would give a time that is past already, and what
// waits for the change to be in force everywhere would not.
var changedNow = firestore.Update{Path: "changedAt", Value: firestore.ServerTimestamp}

func (s *firestoreStore) Key(ctx context.Context, appID, hash string) (Key, error) {
	var d keyDocument
	if err := read(ctx, s.keyRef(appID, hash), &d); err != nil {
		return Key{}, fmt.Errorf("read key %q of app %q: %w", hash, appID, err)
	}
	return d.key(), nil
}

func (s *firestoreStore) Keys(ctx context.Context, appID string) ([]Key, error) {
	if err := s.mustExist(ctx, appID); err != nil {
		return nil, fmt.Errorf("list keys of app %q: %w", appID, err)
	}
	documents, err := s.appRef(appID).Collection("keys").OrderBy("hash", firestore.Asc).Documents(ctx).GetAll()
	if err != nil {
		return nil, fmt.Errorf("list keys of app %q: %w", appID, err)
	}
	var keys []Key
	for _, document := range documents {
		var d keyDocument
		if err := document.DataTo(&d); err != nil {
			return nil, fmt.Errorf("list keys of app %q: document %s: %w", appID, document.Ref.ID, err)
		}
		keys = append(keys, d.key())
	}
	return keys, nil
}

func (s *firestoreStore) PutKey(ctx context.Context, appID string, key Key) error {
	key, err := key.prepared()
	if err != nil {
		return fmt.Errorf("put key of app %q: %w", appID, err)
	}
	if err := s.mustExist(ctx, appID); err != nil {
		return fmt.Errorf("put key of app %q: %w", appID, err)
	}
	if _, err := s.keyRef(appID, key.Hash).Set(ctx, keyDocument(key)); err != nil {
		return fmt.Errorf("put key of app %q: %w", appID, err)
	}
	return nil
}

func (s *firestoreStore) DeleteKey(ctx context.Context, appID, hash string) error {
	if _, err := s.keyRef(appID, hash).Delete(ctx, firestore.Exists); err != nil {
		return fmt.Errorf("delete key %q of app %q: %w", hash, appID, named(err, codes.NotFound, ErrNotFound))
	}
	return nil
}

func (s *firestoreStore) SetStrategy(ctx context.Context, appID string, active strategy.Strategy) (version int64, changed bool, err error) {
	backoff := gax.Backoff{Initial: 10 * time.Millisecond, Max: time.Second}
	for range maxAttempts {
		version, changed, err = s.trySetStrategy(ctx, appID, active)
		if !overtaken(err) {
			break
		}
		if err := gax.Sleep(ctx, backoff.Pause()); err != nil {
			return 0, false, fmt.Errorf("set strategy of app %q: %w", appID, err)
		}
	}
	if err != nil {
		return 0, false, fmt.Errorf("set strategy of app %q: %w", appID, err)
	}
	return version, changed, nil
}

// trySetStrategy changes the strategy unless somebody changes the app meanwhile.
// A transaction that reads the app would hold a lock on it: then others wait for
// seconds where here they only try again.
func (s *firestoreStore) trySetStrategy(ctx context.Context, appID string, active strategy.Strategy) (int64, bool, error) {
	snapshot, err := s.appRef(appID).Get(ctx)
	var d appDocument
	if err := into(&d, snapshot, err); err != nil {
		return 0, false, err
	}
	app, err := d.app()
	if err != nil {
		return 0, false, err
	}
	app, changed := app.next(active)
	if !changed {
		return app.StrategyVersion, false, nil
	}
	text, err := json.Marshal(active)
	if err != nil {
		return 0, false, err
	}
	kept := strategyDocument{Version: app.StrategyVersion, Strategy: string(text), CreatedAt: stamp(time.Time{})}
	err = s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		// Create, not Set: no version is given away twice.
		if err := tx.Create(s.strategyRef(appID, kept.Version), kept); err != nil {
			return err
		}
		return tx.Update(s.appRef(appID), []firestore.Update{
			{Path: "strategy", Value: kept.Strategy},
			{Path: "strategyVersion", Value: kept.Version},
			changedNow,
		}, firestore.LastUpdateTime(snapshot.UpdateTime))
	}, firestore.MaxAttempts(1))
	return kept.Version, true, err
}

// overtaken tells whether a change failed because somebody else's came first.
func overtaken(err error) bool {
	switch status.Code(err) {
	case codes.Aborted, codes.AlreadyExists, codes.FailedPrecondition:
		return true
	}
	return false
}

func (s *firestoreStore) StrategyVersion(ctx context.Context, appID string, version int64) (strategy.Strategy, error) {
	var d strategyDocument
	err := read(ctx, s.strategyRef(appID, version), &d)
	if err != nil {
		return strategy.Strategy{}, fmt.Errorf("read strategy version %d of app %q: %w", version, appID, err)
	}
	kept, err := parseStrategy(d.Strategy)
	if err != nil {
		return strategy.Strategy{}, fmt.Errorf("read strategy version %d of app %q: %w", version, appID, err)
	}
	return kept, nil
}

func (s *firestoreStore) IndexSettings(ctx context.Context, appID, index string) (catalog.Settings, error) {
	var d indexDocument
	if err := read(ctx, s.indexRef(appID, index), &d); err != nil {
		return catalog.Settings{}, fmt.Errorf("read settings of index %q of app %q: %w", index, appID, err)
	}
	return d.settings(), nil
}

func (s *firestoreStore) SetIndexSettings(ctx context.Context, appID, index string, attributesForFaceting []string) (int64, error) {
	if err := s.mustExist(ctx, appID); err != nil {
		return 0, fmt.Errorf("set settings of index %q of app %q: %w", index, appID, err)
	}
	var version int64
	ref := s.indexRef(appID, index)
	err := s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		var d indexDocument
		snapshot, err := tx.Get(ref)
		if err := into(&d, snapshot, err); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		settings, changed := nextSettings(d.settings(), attributesForFaceting)
		version = settings.Version
		if !changed {
			return nil
		}
		return tx.Set(ref, indexDocument{Index: index, AttributesForFaceting: settings.AttributesForFaceting, Version: version})
	})
	if err != nil {
		return 0, fmt.Errorf("set settings of index %q of app %q: %w", index, appID, err)
	}
	return version, nil
}
