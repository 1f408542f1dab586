package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/intake/warehouse"
)

// report is what a comparison of a folder with a dump found.
type report struct {
	folder string
	// Same, Differ, Missing and Extra count events: with equal content, with another one, of the dump
	// alone, and of the folder alone.
	Same, Differ, Missing, Extra int64
	// Later counts events of the dump that the folder lacks, because they were received after the export
	// began.
	Later int64
	// Deleted counts rows of users who were deleted or have opted out, and Strangers profiles of users
	// without an event in the folder.
	Deleted, Strangers int64
	// Segments says that the saved segments are those of the dump.
	Segments bool
	profiles int64
}

func (r report) text() string {
	segments := "as in the dump"
	if !r.Segments {
		segments = "other ones than in the dump"
	}
	return fmt.Sprintf("%s, compared with the engine:\n"+
		"  events: %d as in the dump, %d that differ, %d missing, %d that the engine no longer has; %d later ones do not count\n"+
		"  profiles: %d, %d of users without events\n"+
		"  segments: %s\n"+
		"  rows of deleted users: %d\n",
		r.folder, r.Same, r.Differ, r.Missing, r.Extra, r.Later, r.profiles, r.Strangers, segments, r.Deleted)
}

// err returns an error unless all is as it was.
func (r report) err() error {
	if r.Differ+r.Missing+r.Extra+r.Deleted+r.Strangers > 0 || !r.Segments {
		return errors.New("the export is not what the engine has now: export again, and remove this one")
	}
	return nil
}

// fingerprint is an event in short.
type fingerprint struct {
	place   [16]byte
	content uint64
	later   bool // received after the export began
}

func fingerprintOf(e *warehouse.Event) fingerprint {
	var f fingerprint
	sum := sha256.Sum256(fmt.Appendf(nil, "%q,%d,%q", e.UserToken, e.Time.UnixMilli(), e.ID))
	copy(f.place[:], sum[:])
	h := fnv.New64a()
	fmt.Fprintf(h, "%d,%q,%q,%q,%q,%d,%d,", e.ReceivedAt.UnixMilli(), e.Type, e.Name, e.Index, e.ObjectIDs,
		e.UnknownObjects, e.LeftOutObjects)
	fmt.Fprintf(h, "%q", e.Event)
	for _, filter := range e.Filters {
		fmt.Fprintf(h, ",%q,%q,%d", filter.Facet, filter.Value, filter.N)
	}
	f.content = h.Sum64()
	return f
}

// verify compares a folder with a dump that is read now.
func verify(app, folder string, in *bufio.Reader) (report, error) {
	r := report{folder: folder}
	was, err := readSummary(folder)
	if err != nil {
		return r, err
	}
	if was.App != app {
		return r, fmt.Errorf("it is an export of %.64q, not of %.64q", was.App, app)
	}
	var dumped []fingerprint
	var segments []string
	s := &stream{app: app, event: func(e warehouse.Event) error {
		f := fingerprintOf(&e)
		f.later = e.ReceivedAt.After(was.AsOf)
		dumped = append(dumped, f)
		return nil
	}, segment: func(g warehouse.Segment) error {
		segments = append(segments, g.Name+" "+g.Condition)
		return nil
	}}
	if err := s.read(in); err != nil {
		return r, err
	}
	if err := r.events(was, dumped, s); err != nil {
		return r, err
	}
	return r, r.segments(was, segments)
}

// events compares the events, and looks for deleted users.
func (r *report) events(was summary, dumped []fingerprint, s *stream) error {
	var kept []fingerprint
	users := map[[16]byte]struct{}{}
	err := scanAll(r.folder, eventsTable, was.Events, func(e *warehouse.Event) error {
		kept = append(kept, fingerprintOf(e))
		users[userKey(e.UserToken)] = struct{}{}
		if s.deleted[e.UserToken].covers(e) {
			r.Deleted++
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.compare(kept, dumped)
	return scanAll(r.folder, profilesTable, was.Profiles, func(p *warehouse.Profile) error {
		r.profiles++
		if t, ok := s.deleted[p.UserToken]; ok && t.ended(p) {
			r.Deleted++
		} else if _, known := users[userKey(p.UserToken)]; !known {
			r.Strangers++
		}
		return nil
	})
}

func userKey(token string) (key [16]byte) {
	sum := sha256.Sum256([]byte(token))
	copy(key[:], sum[:])
	return key
}

// compare counts the events of the folder and of the dump.
func (r *report) compare(kept, dumped []fingerprint) {
	order := func(a, b fingerprint) int {
		return cmp.Or(bytes.Compare(a.place[:], b.place[:]), cmp.Compare(a.content, b.content))
	}
	slices.SortFunc(kept, order)
	slices.SortFunc(dumped, order)
	for len(kept) > 0 || len(dumped) > 0 {
		side := 0
		switch {
		case len(dumped) == 0:
			side = -1
		case len(kept) == 0:
			side = 1
		default:
			side = bytes.Compare(kept[0].place[:], dumped[0].place[:])
		}
		switch {
		case side < 0:
			r.Extra++
			kept = kept[1:]
		case side > 0 && dumped[0].later:
			r.Later++
			dumped = dumped[1:]
		case side > 0:
			r.Missing++
			dumped = dumped[1:]
		default:
			if kept[0].content == dumped[0].content {
				r.Same++
			} else {
				r.Differ++
			}
			kept, dumped = kept[1:], dumped[1:]
		}
	}
}

func (r *report) segments(was summary, dumped []string) error {
	var kept []string
	err := scanAll(r.folder, segmentsTable, was.Segments, func(g *warehouse.Segment) error {
		kept = append(kept, g.Name+" "+g.Condition)
		return nil
	})
	slices.Sort(kept)
	slices.Sort(dumped)
	r.Segments = slices.Equal(kept, dumped)
	return err
}

// scanAll reads all files of a table, whose rows must be as many as the summary says.
func scanAll[T any](folder, table string, want int64, f func(*T) error) error {
	files, err := filepath.Glob(filepath.Join(escapeGlob(folder), table+"-*.parquet"))
	if err != nil {
		return err
	}
	var rows int64
	for _, path := range files {
		if err := scan(path, func(row *T) error { rows++; return f(row) }); err != nil {
			return err
		}
	}
	if rows != want {
		return fmt.Errorf("the files of %s have %d rows, but %s says %d: a file is missing or was changed", table, rows,
			summaryFile, want)
	}
	return nil
}

// escapeGlob makes a name stand for itself in a pattern.
func escapeGlob(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}
