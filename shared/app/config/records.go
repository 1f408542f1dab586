package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Names of records begin with what they hold.
const (
	recordApp      = "app/"
	recordDeletion = "deletion/"
)

// NewStored returns a Store that keeps everything in memory and in records. It begins
// with what they hold. What fails to be saved is not changed.
func NewStored(r documents.Records) (Store, error) {
	m := &memory{apps: make(map[string]*memoryApp), ended: make(map[string]Deletion), records: r}
	err := r.Load(func(name string, value []byte) error {
		if app, ok := strings.CutPrefix(name, recordApp); ok {
			a, err := decodeApp(value)
			m.apps[app] = a
			return err
		}
		app, ok := strings.CutPrefix(name, recordDeletion)
		if !ok {
			return fmt.Errorf("a record %q is not of this version", name)
		}
		var d Deletion
		err := json.Unmarshal(value, &d)
		m.ended[app] = d
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return m, nil
}

// storedApp is an app with all that belongs to it, as a record holds it.
type storedApp struct {
	App        App
	Keys       map[string]Key
	Strategies []storedStrategy // oldest first
	Indexes    map[string]catalog.Settings
	Feeds      map[string]Feed
	Segments   map[string]SavedSegment
}

type storedStrategy struct {
	Version  Version
	Strategy strategy.Strategy
}

func (a *memoryApp) encode() ([]byte, error) {
	s := storedApp{App: a.App, Keys: a.keys, Indexes: a.indexes, Feeds: a.feeds, Segments: a.segments}
	for _, kept := range a.strategies {
		s.Strategies = append(s.Strategies, storedStrategy{kept.Version, kept.strategy})
	}
	value, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode app %q: %w", a.ID, err)
	}
	return value, nil
}

func decodeApp(value []byte) (*memoryApp, error) {
	var s storedApp
	if err := json.Unmarshal(value, &s); err != nil {
		return nil, err
	}
	a := newMemoryApp(s.App)
	maps.Copy(a.keys, s.Keys)
	maps.Copy(a.indexes, s.Indexes)
	maps.Copy(a.feeds, s.Feeds)
	maps.Copy(a.segments, s.Segments)
	for _, kept := range s.Strategies {
		a.strategies = append(a.strategies, memoryStrategy{kept.Version, kept.Strategy})
	}
	return a, nil
}

func newMemoryApp(app App) *memoryApp {
	return &memoryApp{
		App: app, keys: make(map[string]Key), indexes: make(map[string]catalog.Settings), feeds: make(map[string]Feed),
		segments: make(map[string]SavedSegment),
	}
}

func (a *memoryApp) clone() *memoryApp {
	return &memoryApp{
		App: a.App, keys: maps.Clone(a.keys), strategies: slices.Clone(a.strategies), indexes: maps.Clone(a.indexes), feeds: maps.Clone(a.feeds),
		segments: maps.Clone(a.segments),
	}
}

// replace saves an app or its deletion, or both, and then makes them the present ones.
// nil means that there is none. The lock must be held.
func (m *memory) replace(id string, app *memoryApp, ended *Deletion) error {
	if m.records != nil {
		records := []documents.Record{{Name: recordApp + id}, {Name: recordDeletion + id}}
		var err error
		if app != nil {
			if records[0].Value, err = app.encode(); err != nil {
				return err
			}
			// From here on the app is what a later process would read.
			if app, err = decodeApp(records[0].Value); err != nil {
				return fmt.Errorf("read back app %q: %w", id, err)
			}
		}
		if ended != nil {
			if records[1].Value, err = json.Marshal(ended); err != nil {
				return fmt.Errorf("encode the deletion of app %q: %w", id, err)
			}
		}
		if err := m.records.Save(records...); err != nil {
			return err
		}
	}
	delete(m.apps, id)
	delete(m.ended, id)
	if app != nil {
		m.apps[id] = app
	}
	if ended != nil {
		m.ended[id] = *ended
	}
	return nil
}
