package config

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// Store reads and changes the current configuration. It is safe for concurrent
// use. Its arguments and results are shared and must not be modified. An error
// other than ErrNotFound and ErrExists is a fault of the backend, or reports a
// malformed argument.
//
// It lies in two stores of documents, because everything that answers a request may change the
// configuration, and nothing that does so may make a key. These are the documents of the
// configuration and their fields:
//
//	apps/{app}                       id, retentionDays, strategy, strategyVersion, createdAt, changedAt, belowChangedAt,
//	                                 consistency, browserRanking, scoringVersion, ranking,
//	                                 limits {eventsPerSecond, importsPerSecond, readsPerSecond, jobsPerHour, strategiesPerHour,
//	                                 userEventsPerDay, writeWindowMs},
//	                                 privateFacets, numericBands, trackNames, dates, feedVersion, segmentsSince,
//	                                 holdoutSince, experiment, armRankings,
//	                                 log {write, read, encoding, generation},
//	                                 migration {id, from, to, phase, job, backfill, rate, undone, startedAt},
//	                                 region, move {id, from, to, births, phase, back, job, startedAt, changedAt}
//	apps/{app}/strategies/{version}  version, strategy, createdAt, scoringVersion, ranking, note
//	apps/{app}/indexes/{index}       index, attributesForFaceting, numericBands, bandsVersion, version
//	apps/{app}/feeds/{name}          name, version, index, date, definition
//	apps/{app}/savedSegments/{name}  name, where, setAt
//	apps/{app}/experiments/{name}    name, definition
//	apps/{app}/keptReports/{id}      experiment, month, definition, job, asOf, body
//	apps/{app}/endedSessions/{id}    id, endsAt
//	deletions/{app}                  id, region, startedAt, attempt, endedAt, reusableFrom, rows
//
// And these are the documents of keys:
//
//	apps/{app}/keys/{hash}           hash, acl, createdAt, name, description, validUntil, indexes, referers, addressRate,
//	                                 hashTokens, parent
//	keyrings/{app}                   id, changedAt
//
// A deleted app has its document in deletions and none in apps. The collections below its
// former document remain until the job of its deletion deletes them.
//
// A key is stored as its hex SHA-256, and a parent of secured keys also as its encrypted
// text. A key without an attribute lacks the field. A strategy is stored as one JSON string
// without its ranking, which is another one: as a map, each of its aliases would be indexed,
// and names that are not field paths would need escaping. strategyVersion is 0 and strategy
// is empty until a strategy is set. Versions count from 1, and none is used twice.
// SetStrategy deletes those that need not be kept any more.
//
// privateFacets is one JSON string, too, with the lists by index, and so are numericBands,
// also those of an index, and dates, with the attributes that feeds order by. Those of the
// app are fields of the app. trackNames is one, with types by names. A definition is one JSON string as well, and the
// app has a copy of that of its last experiment, and what its arms order by.
//
// A document's id is the name itself, escaped where Firestore would refuse it, so every
// document also holds its name. The fields strategy, privateFacets, numericBands, trackNames, dates,
// experiment, armRankings, definition, where and attributesForFaceting are never queried and need no index.
//
// A change reads the app's document, and what else it depends on, and then writes on
// condition that the app is as it was read; else it begins again. Changes of feeds and
// segments set belowChangedAt for that. A new key depends on its keyring: see PutKey.
type Store struct {
	documents documents.Store
	keys      documents.Store
	log       *slog.Logger
	after     int64 // the first version is after+1
}

// New returns the Store that keeps the configuration in documents, and keys in others. Both may be
// the same. It caches nothing, and logs faults that it does not return.
func New(d, keys documents.Store, log *slog.Logger) *Store { return NewAfter(d, keys, log, 0) }

// NewAfter is New, except that the versions of strategies, settings and feeds begin after
// version. It is for a process whose data survive in an emulator and whose configuration
// does not: what an earlier process computed under a version must not be taken for the
// result of another strategy with the same version.
func NewAfter(d, keys documents.Store, log *slog.Logger, version int64) *Store {
	return &Store{d, keys, log, version}
}

// NewMemory returns an empty Store that keeps everything in memory.
func NewMemory() *Store {
	return New(documents.NewMemory(), documents.NewMemory(), slog.New(slog.DiscardHandler))
}

// read decodes the document of a path.
func read(ctx context.Context, s documents.Store, path string, into any) error {
	d, err := s.Get(ctx, path)
	if err != nil {
		return err
	}
	return d.Decode(into)
}

// mustExist returns ErrNotFound if an app does not exist.
func (s *Store) mustExist(ctx context.Context, appID string) error {
	_, err := s.documents.Get(ctx, AppPath(appID))
	return err
}

// list decodes the documents of a query.
func list[D any](ctx context.Context, s documents.Store, q documents.Query) ([]D, error) {
	found, err := s.Find(ctx, q)
	if err != nil {
		return nil, err
	}
	all := make([]D, len(found))
	for i, d := range found {
		if err := d.Decode(&all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// below is list for a collection of an app. If it has no documents, the app must exist.
func below[D any](ctx context.Context, s *Store, appID string, q documents.Query) ([]D, error) {
	q.Collection = AppPath(appID) + "/" + q.Collection
	all, err := list[D](ctx, s.documents, q)
	if err == nil && len(all) == 0 {
		err = s.mustExist(ctx, appID)
	}
	return all, err
}

// readApp reads an app and its document.
func (s *Store) readApp(ctx context.Context, appID string) (documents.Document, App, error) {
	d, err := s.documents.Get(ctx, AppPath(appID))
	if err != nil {
		return d, App{}, err
	}
	app, err := documents.Once(d, func() (App, error) {
		var stored appDocument
		if err := d.Decode(&stored); err != nil {
			return App{}, err
		}
		return stored.app()
	})
	return d, app, err
}

// changeApp stores what change makes of an app, together with writes to documents below it.
// After a conflict it calls change again with the current app.
func (s *Store) changeApp(ctx context.Context, appID string, change func(App) (App, []documents.Write, error)) error {
	return documents.Retry(ctx, func() error {
		d, old, err := s.readApp(ctx, appID)
		if err != nil {
			return err
		}
		app, writes, err := change(old)
		if err != nil {
			return err
		}
		fields, err := appChanges(old, app)
		if err != nil {
			return err
		}
		if len(writes) > 0 && len(fields) == 0 {
			fields["belowChangedAt"] = documents.Now
		}
		if len(fields) > 0 {
			writes = append(writes, documents.Change(d, fields))
		}
		if len(writes) == 0 {
			return nil
		}
		err = s.documents.Commit(ctx, writes...)
		if errors.Is(err, documents.ErrExists) { // another change has created the document
			err = fmt.Errorf("%w: %v", documents.ErrOvertaken, err)
		}
		return err
	})
}

// setApp is changeApp for a change of the app alone that cannot fail.
func (s *Store) setApp(ctx context.Context, appID, what string, set func(*App)) error {
	err := s.changeApp(ctx, appID, func(app App) (App, []documents.Write, error) {
		set(&app)
		return app, nil, nil
	})
	if err != nil {
		return fmt.Errorf("set %s of app %q: %w", what, appID, err)
	}
	return nil
}

// appChanges returns the fields in which the documents of two versions of an app differ. What
// it does not know of a document it leaves. Times that are new come from the store's clock.
func appChanges(old, app App) (documents.Fields, error) {
	was, err := newAppDocument(old)
	if err != nil {
		return nil, err
	}
	is, err := newAppDocument(app)
	if err != nil {
		return nil, err
	}
	if is.Move != nil && !app.Move.ChangedAt.Equal(old.Move.ChangedAt) {
		is.Move.ChangedAt = time.Time{}
	}
	before, fields := documents.FieldsOf(was), documents.FieldsOf(is)
	if is.Move != nil && (was.Move == nil || *is.Move != *was.Move) {
		fields["move"] = *is.Move // the client of Firestore sets no times behind a pointer
	}
	for name, value := range fields {
		if reflect.DeepEqual(value, before[name]) {
			delete(fields, name)
		} else if name == "changedAt" ||
			(name == "segmentsSince" || name == "holdoutSince") && value != documents.Removed {
			fields[name] = documents.Now
		}
	}
	return fields, nil
}

// App returns an app, or ErrNotFound.
func (s *Store) App(ctx context.Context, appID string) (App, error) {
	_, app, err := s.readApp(ctx, appID)
	if err != nil {
		return App{}, fmt.Errorf("read app %q: %w", appID, err)
	}
	return app, nil
}

// Apps returns the ids of all apps, sorted.
func (s *Store) Apps(ctx context.Context) ([]string, error) {
	apps, err := list[appDocument](ctx, s.documents, documents.Query{Collection: "apps", Only: []string{"id"}})
	if err != nil {
		return nil, fmt.Errorf("list apps: %w", err)
	}
	ids := make([]string, len(apps))
	for i, d := range apps {
		ids[i] = d.ID
	}
	slices.Sort(ids)
	return ids, nil
}

// SetRetention changes how long an app's events count. It returns ErrNotFound
// if the app does not exist.
func (s *Store) SetRetention(ctx context.Context, appID string, days int) error {
	if err := CheckRetention(days); err != nil {
		return err
	}
	return s.setApp(ctx, appID, "retention", func(a *App) { a.RetentionDays, a.ChangedAt = days, Stamp(time.Time{}) })
}

// SetConsistency changes how reads of an app's profiles see replicas. It returns
// ErrNotFound if the app does not exist.
func (s *Store) SetConsistency(ctx context.Context, appID string, c Consistency) error {
	if _, err := ParseConsistency(string(c)); err != nil {
		return err
	}
	return s.setApp(ctx, appID, "consistency", func(a *App) { a.Consistency = c })
}

// SetBrowserRanking changes whether web pages may ask for orders. It does not set
// ChangedAt. It returns ErrNotFound if the app does not exist.
func (s *Store) SetBrowserRanking(ctx context.Context, appID string, on bool) error {
	return s.setApp(ctx, appID, "browser ranking", func(a *App) { a.BrowserRanking = on })
}

// SetSegments turns segments on or off. To turn them on again changes nothing. It
// returns ErrNotFound if the app does not exist.
func (s *Store) SetSegments(ctx context.Context, appID string, on bool) error {
	return s.setApp(ctx, appID, "segments", func(a *App) { *a, _ = a.WithSegments(on) })
}

// SetLimits changes what an app may ask for. It does not set ChangedAt. It
// returns ErrNotFound if the app does not exist.
func (s *Store) SetLimits(ctx context.Context, appID string, n limit.Numbers) error {
	if err := n.Check(); err != nil {
		return err
	}
	return s.setApp(ctx, appID, "limits", func(a *App) { a.Limits = n })
}

// SetTrackNames gives names of track calls types of events, and takes that of a name with an
// empty type away. Other names keep theirs. It returns all names afterwards, ErrNotFound if the
// app does not exist, or what TrackNames.With refuses. It does not set ChangedAt.
func (s *Store) SetTrackNames(ctx context.Context, appID string, change TrackNames) (all TrackNames, err error) {
	err = s.changeApp(ctx, appID, func(app App) (App, []documents.Write, error) {
		all, err = app.TrackNames.With(change)
		app.TrackNames = all
		return app, nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("set names of track calls of app %q: %w", appID, err)
	}
	return all, nil
}

// UpdateLog applies change to the Log and the Migration of an app as a
// compare-and-set, and returns the app afterwards. After a conflict it calls
// change again with the current app. change must be idempotent: after a lost
// response it can see its own earlier write. It must not use the store, and
// UpdateLog ignores what it does to other fields.
//
// UpdateLog returns ErrNotFound if the app does not exist. If change fails or
// leaves an invalid Log, UpdateLog changes nothing and returns the error.
// ChangedAt is set if the schemas change. A new encoding alone does not set it,
// since a reader recognizes the encoding of each value.
func (s *Store) UpdateLog(ctx context.Context, appID string, change func(*App) error) (App, error) {
	return s.updateApp(ctx, appID, "log", func(a App) (App, bool, error) { return a.WithLog(change) })
}

// SetEncoding changes the encoding of an app's new events, and returns the app
// afterwards. It returns ErrNotFound if the app does not exist.
func (s *Store) SetEncoding(ctx context.Context, appID string, e schema.Encoding) (App, error) {
	return s.UpdateLog(ctx, appID, func(a *App) error {
		a.Log.Encoding = e
		return nil
	})
}

// UpdateMove is UpdateLog for the Region and the Move of an app. ChangedAt is set if
// what requests go by changes: see Move.
func (s *Store) UpdateMove(ctx context.Context, appID string, change func(*App) error) (App, error) {
	return s.updateApp(ctx, appID, "region", func(a App) (App, bool, error) { return a.WithMove(change) })
}

// updateApp changes an app and returns it afterwards.
func (s *Store) updateApp(ctx context.Context, appID, what string,
	change func(App) (App, bool, error)) (app App, err error) {
	changed := false
	err = s.changeApp(ctx, appID, func(old App) (App, []documents.Write, error) {
		app, changed, err = change(old)
		return app, nil, err
	})
	if err == nil && changed {
		_, app, err = s.readApp(ctx, appID)
	}
	if err != nil {
		return App{}, fmt.Errorf("change %s of app %q: %w", what, appID, err)
	}
	return app, nil
}
