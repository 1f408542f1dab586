package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/affinityengine/affinity/shared/intake/warehouse"
)

// The names of the tables, which begin those of their files.
const (
	eventsTable   = "events"
	profilesTable = "profiles"
	segmentsTable = "segments"
)

// export writes the lines of an app to a new folder. The folder appears once all is written: what is left of
// a program that ended in the middle has another name.
func export(app, to string, in *bufio.Reader) (done summary, err error) {
	if err := vacant(to); err != nil {
		return done, err
	}
	parent := filepath.Dir(filepath.Clean(to))
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return done, err
	}
	folder, err := os.MkdirTemp(parent, filepath.Base(filepath.Clean(to))+partial)
	if err != nil {
		return done, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	if done, err = writeAll(app, folder, in); err != nil {
		return done, err
	}
	if err := done.write(folder); err != nil {
		return done, err
	}
	if err := vacant(to); err != nil { // another export may have been faster
		return done, err
	}
	return done, os.Rename(folder, to)
}

// partial is between the name of a folder and a random number while it is written.
const partial = ".partial-"

// vacant reports an error unless a folder is empty or missing.
func vacant(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty: remove it, or give another --to", folder)
	}
	return err
}

func writeAll(app, folder string, in *bufio.Reader) (done summary, err error) {
	events := &table[warehouse.Event]{folder: folder, name: eventsTable, size: func(e *warehouse.Event) int {
		return 200 + len(e.Event) + 64*len(e.Filters)
	}}
	profiles := &table[warehouse.Profile]{folder: folder, name: profilesTable, size: func(p *warehouse.Profile) int {
		return 200 + 64*len(p.Affinities)
	}}
	segments := &table[warehouse.Segment]{folder: folder, name: segmentsTable, size: func(g *warehouse.Segment) int {
		return 200 + len(g.Condition)
	}}
	s := &stream{app: app, event: events.add, profile: profiles.add, segment: segments.add}
	err = s.read(in)
	for _, end := range []func() error{events.end, profiles.end, segments.end} {
		err = errors.Join(err, end())
	}
	if err != nil {
		return done, err
	}
	// Users may have been deleted after their lines were read: later lines say who.
	if len(s.late) > 0 {
		err = events.drop(func(e *warehouse.Event) bool { return s.late[e.UserToken].covers(e) })
	}
	if err == nil && len(s.deleted) > 0 {
		err = profiles.drop(func(p *warehouse.Profile) bool {
			t, ok := s.deleted[p.UserToken]
			return ok && t.ended(p)
		})
	}
	return summary{App: app, AsOf: s.asOf, Events: events.total, Profiles: profiles.total, Segments: segments.total}, err
}
