package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/intake/export"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

const (
	// dumpBytes is how many bytes of lines a page has at least, if there are as many.
	dumpBytes = 4 << 20
	// dumpUsers is how many users a page looks at to find those who were deleted.
	dumpUsers = 20_000
)

// dumpPart is a part of a dump.
type dumpPart string

// The parts of a dump, in their order. Deletions are there twice: the first ones keep the
// events of deleted users out of a copy from its beginning, and the last ones hold for
// users who were deleted while the dump ran. So are consents, before all that they decide on. Links are
// there once, with the last ones: two forms of a link would contradict each other.
const (
	dumpSettings  dumpPart = ""
	dumpObjects   dumpPart = "objects"
	dumpConsents  dumpPart = "consents"
	dumpDeletions dumpPart = "deletions"
	dumpEvents    dumpPart = "events"
	dumpLater     dumpPart = "later"
	dumpEnd       dumpPart = "end"
)

// dumpCursor is where a page begins. In the query it is JSON in base64url.
type dumpCursor struct {
	Part  dumpPart `json:"part"`
	Index string   `json:"index,omitempty"` // of objects
	// Region is where the users of the page live, if each user of the app lives in a region of their own; "" is that of
	// the app.
	Region string `json:"region,omitempty"`
	// After is the last object, user or event before the page; "" before the first one.
	// That of an event is a place of package store.
	After string        `json:"after,omitempty"`
	Sent  api.ExportEnd `json:"sent"` // with the pages before
}

func (c dumpCursor) encode() (string, error) {
	text, err := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(text), err
}

func decodeDumpCursor(text string) (c dumpCursor, err error) {
	if text == "" {
		return c, nil
	}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(decoded, &c)
	}
	known := []dumpPart{dumpObjects, dumpConsents, dumpDeletions, dumpEvents, dumpLater}
	if err != nil || !slices.Contains(known, c.Part) {
		return c, httpapi.Errorf(http.StatusUnprocessableEntity, "cursor must be that of an exportNext line of GET /1/dump")
	}
	return c, nil
}

// dumpPage is a page of a dump, while it is made.
type dumpPage struct {
	handler
	app   config.App
	now   time.Time
	at    dumpCursor
	lines []byte
}

// dump answers with a page of all that the app has. It reads the whole page before it
// answers: a page that cannot be read is an error, and the request can be sent again.
func (h handler) dump(w http.ResponseWriter, r *http.Request, app config.App, key string) error {
	at, err := decodeDumpCursor(r.URL.Query().Get("cursor"))
	if err != nil {
		return err
	}
	leave, err := h.Limits.Enter(app.ID, limit.Export)
	if err != nil {
		return err
	}
	defer leave()
	ctx := r.Context()
	if err := admission.Take(ctx, exportBytes); err != nil {
		return fmt.Errorf("dump an app: %w", err)
	}
	p := &dumpPage{handler: h, now: h.Now(), at: at}
	if p.app, err = h.Config.App(ctx, app.ID); err != nil {
		return fmt.Errorf("dump an app: %w", err)
	}
	if p.app.Moving() {
		return httpapi.Errorf(http.StatusConflict, "App %s is moving to another region: dump it once it has arrived", app.ID)
	}
	if at.Part == dumpSettings { // a dump begins
		change := auditlog.Change{App: app.ID, Actor: key, Action: auditlog.AppDump}
		err = auditlog.New(h.AuditLog()).Do(ctx, change, func() (auditlog.End, error) { return auditlog.End{}, p.read(ctx) })
	} else {
		err = p.read(ctx)
	}
	if err != nil {
		return fmt.Errorf("dump an app: %w", err)
	}
	httpapi.WriteLines(w, p.lines)
	return nil
}

// read reads the lines of the page.
func (p *dumpPage) read(ctx context.Context) error {
	parts := map[dumpPart]func(context.Context) error{
		dumpSettings: p.settings, dumpObjects: p.objects, dumpConsents: p.users, dumpDeletions: p.users,
		dumpEvents: p.events, dumpLater: p.users,
	}
	// Each part reads up to a bounded number of rows, so this ends soon after dumpBytes.
	for begun := time.Now(); p.at.Part != dumpEnd && len(p.lines) < dumpBytes && time.Since(begun) < dumpTime; {
		if err := parts[p.at.Part](ctx); err != nil {
			return err
		}
	}
	if p.at.Part == dumpEnd {
		return p.add(api.ExportLine{End: &p.at.Sent})
	}
	cursor, err := p.at.encode()
	if err != nil {
		return err
	}
	return p.add(api.ExportLine{Next: &api.ExportNext{Cursor: cursor}})
}

// dumpTime is for how long a page reads on.
const dumpTime = 10 * time.Second

func (p *dumpPage) add(l api.ExportLine) error {
	text, err := export.Encode(l)
	p.lines = append(p.lines, text...)
	return err
}

// here returns the store of the users of the page.
func (p *dumpPage) here() *store.Store {
	if !p.app.Residency.On() {
		return p.Store
	}
	return p.Store.In(cmp.Or(p.at.Region, p.app.Region))
}

// endUsers ends the users of a region: those of the next one follow, or another part.
func (p *dumpPage) endUsers(part dumpPart) {
	if p.app.Residency.On() {
		regions := p.app.Everywhere()
		if next := max(0, slices.Index(regions, p.at.Region)) + 1; next < len(regions) {
			p.at.Region, p.at.After = regions[next], ""
			return
		}
	}
	p.goOn(part)
}

// goOn begins a part.
func (p *dumpPage) goOn(part dumpPart) { p.at = dumpCursor{Part: part, Sent: p.at.Sent} }

// settings adds what the app has set.
func (p *dumpPage) settings(ctx context.Context) error {
	err := p.add(api.ExportLine{App: &api.ExportedApp{
		App: p.app.ID, AsOf: api.At(p.now), RetentionDays: p.app.RetentionDays, Segments: p.app.Segments.On(),
		BrowserRanking: p.app.BrowserRanking, Consistency: string(p.app.Consistency), Identity: p.identity(),
		Purposes: renderPurposes(p.app.Purposes),
	}})
	if err != nil {
		return err
	}
	if p.app.StrategyVersion > 0 {
		strategy, err := json.Marshal(p.app.Strategy)
		if err == nil {
			err = p.add(api.ExportLine{Strategy: strategy})
		}
		if err != nil {
			return err
		}
	}
	if len(p.app.TrackNames) > 0 {
		if err := p.add(api.ExportLine{TrackNames: &api.TrackNames{Names: p.app.TrackNames}}); err != nil {
			return err
		}
	}
	for _, add := range []func(context.Context) error{p.indexSettings, p.feeds, p.segments} {
		if err := add(ctx); err != nil {
			return err
		}
	}
	p.goOn(dumpObjects)
	return nil
}

func (p *dumpPage) identity() *api.AppIdentity {
	if !p.app.Identity.On() {
		return nil
	}
	shown := renderIdentity(p.app.Identity)
	return &shown
}

func (p *dumpPage) indexSettings(ctx context.Context) error {
	named, err := p.Config.SettingsIndexes(ctx, p.app.ID)
	if err != nil {
		return err
	}
	indexes := slices.AppendSeq(named, maps.Keys(p.app.PrivateFacets))
	slices.Sort(indexes)
	for _, index := range slices.Compact(indexes) {
		s, err := p.Config.IndexSettings(ctx, p.app.ID, index)
		if err != nil && !errors.Is(err, config.ErrNotFound) {
			return err
		}
		settings := api.Settings{PrivateFacets: p.app.PrivateFacets[index], NumericBands: s.NumericBands}
		if s.AttributesForFaceting != nil {
			settings.AttributesForFaceting = append([]string{}, s.AttributesForFaceting...)
		}
		if err := p.add(api.ExportLine{Settings: &api.ExportedSettings{Index: index, Settings: settings}}); err != nil {
			return err
		}
	}
	return nil
}

func (p *dumpPage) feeds(ctx context.Context) error {
	feeds, err := p.Config.Feeds(ctx, p.app.ID)
	if err != nil {
		return err
	}
	for _, f := range feeds {
		line := &api.ExportedFeed{Name: f.Name}
		if err := json.Unmarshal([]byte(f.Definition), &line.Feed); err != nil {
			return fmt.Errorf("decode feed %q: %w", f.Name, err)
		}
		if err := p.add(api.ExportLine{Feed: line}); err != nil {
			return err
		}
	}
	return nil
}

func (p *dumpPage) segments(ctx context.Context) error {
	saved, err := p.Config.SavedSegments(ctx, p.app.ID)
	if err != nil {
		return err
	}
	for _, s := range saved {
		line := &api.ExportedSegment{Name: s.Name}
		if err := json.Unmarshal([]byte(s.Where), &line.Where); err != nil {
			return fmt.Errorf("decode segment %q: %w", s.Name, err)
		}
		if err := p.add(api.ExportLine{Segment: line}); err != nil {
			return err
		}
	}
	return nil
}

// errPageFull ends a part of a page. The next page goes on behind its last row.
var errPageFull = errors.New("the page is full")

// objects adds objects of the first index that has some left.
func (p *dumpPage) objects(ctx context.Context) error {
	indexes, err := p.Store.Catalog.CatalogIndexes(ctx, p.app.ID)
	if err != nil {
		return err
	}
	slices.Sort(indexes)
	for _, index := range indexes {
		if index < p.at.Index {
			continue
		}
		if index > p.at.Index {
			p.at.Index, p.at.After = index, ""
		}
		err := p.Store.Catalog.ScanObjectRecords(ctx, p.app.ID, index, p.at.After, func(id string, record []byte) error {
			p.at.After = id
			p.at.Sent.Objects++
			if err := p.add(api.ExportLine{Object: &api.ExportedObject{Index: index, Object: record}}); err != nil {
				return err
			}
			if len(p.lines) >= dumpBytes {
				return errPageFull
			}
			return nil
		})
		if errors.Is(err, errPageFull) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	if err := p.reports(ctx); err != nil {
		return err
	}
	if p.app.Purposes.On() {
		p.goOn(dumpConsents)
	} else {
		p.goOn(dumpDeletions)
	}
	return nil
}

// reports adds the kept reports of experiments.
func (p *dumpPage) reports(ctx context.Context) error {
	all, err := config.ReportsOf(p.Config).All(ctx, p.app.ID)
	if err != nil {
		return err
	}
	for _, k := range all {
		line, err := reportLine(k)
		if err != nil {
			return err
		}
		if err := p.add(api.ExportLine{Report: &line}); err != nil {
			return err
		}
	}
	return nil
}

// reportLine returns the line of a kept report.
func reportLine(k config.KeptReport) (line api.ExportedReport, err error) {
	if err = json.Unmarshal([]byte(k.Body), &line); err != nil {
		return line, fmt.Errorf("decode the report of experiment %q: %w", k.Experiment, err)
	}
	line.Experiment, line.Month, line.Definition, line.Job, line.AsOf = k.Experiment, k.Month, k.Definition, k.Job,
		api.At(k.AsOf)
	return line, nil
}

// events adds events of the log that count, or will count.
func (p *dumpPage) events(ctx context.Context) error {
	window := affinity.Window{Now: p.now.UnixMilli(), RetentionDays: p.app.RetentionDays}
	var entries []store.Entry
	size := len(p.lines)
	log := p.here().Events.Log(p.app.ID, p.app.Log)
	scan := log.ScanLong
	if p.app.ChangedAt.After(p.now.Add(-store.AnalysisLag)) {
		scan = log.Scan // perhaps the layout has changed
	}
	err := scan(ctx, p.app.Log.Read, store.Range{From: p.at.After}, window.From(), func(e store.Entry) error {
		entries = append(entries, e)
		if size += len(e.Original); size >= dumpBytes {
			return errPageFull
		}
		return nil
	})
	full := errors.Is(err, errPageFull)
	if err != nil && !full {
		return err
	}
	// The tombstones are read after the events: a user who is deleted now has none.
	if err := p.addEvents(ctx, entries); err != nil {
		return err
	}
	if err := p.Profiles.CheckSchema(ctx, p.app); err != nil {
		return err
	}
	if full {
		p.at.After = entries[len(entries)-1].After()
	} else {
		p.endUsers(dumpLater)
	}
	return nil
}

func (p *dumpPage) addEvents(ctx context.Context, entries []store.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	excluded := map[string]store.User{}
	err := p.here().Users.ScanExcluded(ctx, p.app.ID, entries[0].User, entries[len(entries)-1].User,
		func(user string, row store.User) error {
			excluded[user] = row
			return nil
		})
	if err != nil {
		return err
	}
	calls := make([]store.Call, len(entries))
	for i := range entries {
		calls[i] = callOf(&entries[i])
	}
	known, err := p.here().Calls.Known(ctx, p.app.ID, slices.DeleteFunc(slices.Clone(calls),
		func(c store.Call) bool { return c.ID == "" }))
	for i := 0; err == nil && i < len(entries); i++ {
		err = p.addEvent(&entries[i], known[calls[i]], excluded)
	}
	return err
}

// callOf returns the call that an event may be. Its ID is empty if the event has no eventId.
func callOf(e *store.Entry) store.Call {
	c := store.Call{User: e.User, Time: e.Time}
	if !bytes.Contains(e.Original, []byte(`"eventId"`)) {
		return c
	}
	if o, err := schema.ParseOriginal(e.Original); err == nil {
		if sent, err := o.Decode(); err == nil {
			c.ID = sent.CallID()
		}
	}
	return c
}

func (p *dumpPage) addEvent(e *store.Entry, call bool, excluded map[string]store.User) error {
	fault := api.ExportLine{Fault: &api.ExportedFault{UserToken: e.User, Time: e.Time, ID: e.ID}}
	if e.Fault != nil {
		p.at.Sent.Faults++
		return p.add(fault)
	}
	view, err := p.viewOf(e.User, excluded[e.User])
	if err != nil {
		return err
	}
	if kept, ok := e.Objects(); view != nil && ok && !view.Keeps(kept.Type, kept.Name, e.Time, e.Receipt()) {
		return nil
	}
	text, err := lineOf(e.LogRow, e.Original, excluded[e.User], &p.at.Sent, func(l *api.ExportedEvent) {
		l.Call = call
		export.Short(l)
	})
	if err != nil {
		return p.add(fault)
	}
	p.lines = append(p.lines, text...)
	return nil
}
