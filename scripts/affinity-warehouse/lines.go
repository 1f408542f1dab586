package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	lines "github.com/affinityengine/affinity/shared/intake/export"
	"github.com/affinityengine/affinity/shared/intake/warehouse"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// errCut reports a stream of lines without its end.
var errCut = errors.New("the lines end before {\"exportEnd\":...}: nothing was kept; run the command again")

// tombstone says which events of a user do not count.
type tombstone struct {
	affinity.Tombstone
	optedOut event.Types
}

// covers reports whether an event does not count.
func (t tombstone) covers(e *warehouse.Event) bool {
	return t.optedOut.Has(event.Type(e.Type)) || t.Covers(e.Time.UnixMilli(), e.ReceivedAt.UnixMilli())
}

// ended reports whether a profile is from before the deletion, or of a user who is out of all.
func (t tombstone) ended(p *warehouse.Profile) bool {
	return t.optedOut&event.AllTypes == event.AllTypes || p.AsOf.UnixMilli() <= t.ReceivedUntil
}

// stream reads the lines of profiles and of a dump.
type stream struct {
	app     string
	asOf    time.Time // of the dump
	deleted map[string]tombstone
	// purposes are those of the app, and consents what users say of them. An event that counts for none of the surface
	// export is left out. What users say once the first event was read is left to the next export.
	purposes consent.Setting
	consents map[string]consent.Consents
	// late are those that a line behind the first event says, and none before it.
	late     map[string]tombstone
	event    func(warehouse.Event) error
	profile  func(warehouse.Profile) error
	segment  func(warehouse.Segment) error
	faults   int
	begun    bool // the dump has
	events   bool // an event was read
	complete bool
}

// maxLine is more than any line takes: a profile of 10,000 values, or an event of 2 MB.
const maxLine = 64 << 20

func (s *stream) read(in *bufio.Reader) error {
	s.deleted, s.late, s.consents = map[string]tombstone{}, map[string]tombstone{}, map[string]consent.Consents{}
	for n := 1; !s.complete; n++ {
		text, err := readLine(in)
		if errors.Is(err, io.EOF) {
			return errCut
		}
		if err == nil {
			err = s.line(text)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if s.faults > 0 {
		return fmt.Errorf("the engine could not read %d events or profiles: see the alert \"damaged\", or run affinity audit",
			s.faults)
	}
	return nil
}

// readLine returns the next line. io.EOF stands for one without its end, too.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			return bytes.TrimSuffix(line, []byte("\n")), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if len(line) > maxLine {
			return nil, fmt.Errorf("is longer than %d bytes", maxLine)
		}
	}
}

// line takes one line.
func (s *stream) line(text []byte) error {
	var l api.ExportLine
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("is none of a dump: %w", err)
	}
	switch {
	case l.Profile != nil:
		return s.takeProfile(l.Profile)
	case l.App != nil && l.App.App != s.app:
		return fmt.Errorf("is a dump of %.64q, not of %.64q", l.App.App, s.app)
	case l.App != nil:
		s.begun, s.asOf = true, l.App.AsOf.UTC()
		return s.takePurposes(l.App.Purposes)
	case !s.begun:
		return errors.New("is no first line of a dump")
	case l.Cut != nil:
		return errCut
	case l.Fault != nil:
		s.faults++
	case l.Deletion != nil:
		return s.takeDeletion(l.Deletion)
	case l.Consents != nil:
		return s.takeConsents(l.Consents)
	case l.Segment != nil:
		return s.takeSegment(l.Segment)
	case l.Event != nil:
		return s.takeEvent(l.Event)
	case l.End != nil:
		s.complete = true
	}
	return nil
}

func (s *stream) takeProfile(p *api.Profile) error {
	if s.profile == nil {
		return nil
	}
	row := warehouse.Profile{
		App: s.app, UserToken: p.UserToken, AsOf: p.AsOf.UTC(), LastEventAt: p.LastEventAt.UTC(),
		StrategyVersion: p.StrategyVersion, Affinities: make([]warehouse.Affinity, len(p.Affinities)),
	}
	for i, a := range p.Affinities {
		row.Affinities[i] = warehouse.Affinity{Facet: a.Facet, Value: a.Value, Score: a.Score}
	}
	return s.profile(row)
}

func (s *stream) takeDeletion(d *api.ExportedDeletion) error {
	types, ok := event.TypesOf(d.OptedOut...)
	if !ok {
		return errors.New("names a type that no event has")
	}
	t := tombstone{affinity.Tombstone{DeletedUntil: d.DeletedUntil.UnixMilli(),
		ReceivedUntil: d.ReceivedUntil.UnixMilli()}, types}
	if s.events && s.deleted[d.UserToken] != t {
		s.late[d.UserToken] = t
	}
	s.deleted[d.UserToken] = t
	return nil
}

func (s *stream) takePurposes(all []api.AppPurpose) error {
	var purposes []consent.Purpose
	for _, p := range all {
		purpose := consent.Purpose{Name: p.Name, Default: p.Default, Names: p.Names, Facets: p.Facets}
		for _, t := range p.Types {
			purpose.Types = append(purpose.Types, event.Type(t))
		}
		for _, on := range p.Surfaces {
			purpose.Surfaces = append(purpose.Surfaces, consent.Surface(on))
		}
		purposes = append(purposes, purpose)
	}
	var err error
	s.purposes, err = s.purposes.With(purposes)
	return err
}

func (s *stream) takeConsents(l *api.ExportedConsents) error {
	c, err := lines.Consents(l, s.purposes, s.asOf.Add(maxRun))
	if err == nil && !s.events {
		s.consents[l.UserToken] = c
	}
	return err
}

// maxRun is longer than any dump takes.
const maxRun = 30 * 24 * time.Hour

func (s *stream) takeSegment(g *api.ExportedSegment) error {
	condition, err := json.Marshal(g.Where)
	if err != nil {
		return err
	}
	return s.segment(warehouse.Segment{App: s.app, Name: g.Name, Condition: string(condition)})
}

func (s *stream) takeEvent(e *api.ExportedEvent) error {
	original := schema.Original{ReceivedAt: e.ReceivedAt.UnixMilli(), Index: e.Index, UnknownObjects: e.UnknownObjects,
		LeftOutObjects: e.LeftOutObjects, Event: e.Event}
	var counts []affinity.Count
	for _, f := range e.Filters {
		counts = append(counts, affinity.Count{Facet: f.Facet, Value: f.Value, N: f.N})
	}
	row, err := warehouse.EventOf(warehouse.Logged{App: s.app, Time: e.Time, ID: e.ID, Counts: counts,
		Original: original.Append(nil)}, s.asOf)
	if err != nil {
		return err
	}
	s.events = true
	view, _ := s.purposes.Of(s.consents[row.UserToken], consent.Export, 0)
	if !row.Limit(view) {
		return nil
	}
	return s.event(row)
}
