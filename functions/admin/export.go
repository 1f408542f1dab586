package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/intake/export"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/view"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

const (
	// exportBytes is what an export takes from the process's gate: a profile of 10,000
	// values and 1 MiB of names, its answer, and the rows that it reads ahead.
	exportBytes = 24 << 20
	// otherBytes is what it takes more for each log of another token that it reads beside the user's.
	otherBytes = 1 << 20
)

// exportOf is an export that is under way.
type exportOf struct {
	handler
	app     config.App
	user    string
	holder  *store.Store // of the user
	row     store.User   // at the beginning
	person  profile.Person
	profile affinity.Profile
	window  affinity.Window
	out     *bufio.Writer
	end     api.ExportEnd
}

// export answers with all that the engine keeps of a user and counts.
func (h handler) export(w http.ResponseWriter, r *http.Request, app config.App, key string) error {
	x := &exportOf{handler: h, user: r.PathValue("userToken")}
	if !event.ValidUserToken(x.user) {
		return httpapi.Errorf(http.StatusUnprocessableEntity,
			"UserToken must contain only alphanumeric, equal, plus, slash, "+
				"hyphen, or underscore characters, and be between 1 and 129 characters long")
	}
	leave, err := h.Limits.Enter(app.ID, limit.Export)
	if err != nil {
		return err
	}
	defer leave()
	ctx := r.Context()
	if err := admission.Take(ctx, exportBytes); err != nil {
		return fmt.Errorf("export a user: %w", err)
	}
	if err := x.begin(ctx, app.ID); err != nil {
		return err
	}
	change := auditlog.Change{App: app.ID, Actor: key, Action: auditlog.UserExport, User: x.user}
	err = auditlog.New(h.AuditLog()).Do(ctx, change, func() (auditlog.End, error) {
		err := x.send(ctx, w)
		return auditlog.End{Detail: fmt.Sprintf("%d events", x.end.Events)}, err
	})
	var cut *cutError
	if errors.As(err, &cut) { // the answer has begun and says so itself
		if ctx.Err() == nil {
			h.Log.LogAttrs(ctx, slog.LevelError, "an export is cut off", slog.String("app", app.ID), slog.Any("error", cut.err))
		}
		return nil
	}
	return err
}

// cutError is why an export whose first bytes may have been sent did not end.
type cutError struct{ err error }

func (c *cutError) Error() string { return c.err.Error() }

// begin reads who the user is. Nothing is sent yet, so its error is the answer.
func (x *exportOf) begin(ctx context.Context, appID string) (err error) {
	// The cached app may be older than the strategy of the stored profiles.
	if x.app, err = x.Config.App(ctx, appID); err != nil {
		return fmt.Errorf("export a user: %w", err)
	}
	if x.holder, err = x.Profiles.StoreOf(ctx, x.app, x.user); err != nil {
		return fmt.Errorf("export a user: %w", err)
	}
	if x.row, err = x.holder.Users.ReadPrimary(ctx, appID, x.user, store.UserArrival); err != nil {
		return fmt.Errorf("export a user: %w", err)
	}
	if x.person, err = profile.IdentitiesOf(x.Profiles).Person(ctx, x.app, x.user, x.row); err == nil {
		err = admission.Take(ctx, otherBytes*int64(len(x.person.Others)))
	}
	if err != nil {
		return fmt.Errorf("export a user: %w", err)
	}
	profiles, err := x.Profiles.Compute(ctx, x.app, []string{x.user}, affinity.Compile(x.app.Strategy))
	if err != nil {
		return fmt.Errorf("export a user: %w", err)
	}
	if list := profiles[x.user]; len(list) > 0 {
		x.profile = list[0]
	}
	if !x.profile.Known {
		return httpapi.Errorf(http.StatusNotFound, "No profile: user token %q has no event within the retention", x.user)
	}
	x.window = affinity.Window{Now: x.profile.Anchor, RetentionDays: x.app.RetentionDays}
	return nil
}

// send sends the lines. An error that is a *cutError came after the first one.
func (x *exportOf) send(ctx context.Context, w http.ResponseWriter) error {
	err := httpapi.SendLines(w, func(out *bufio.Writer) error {
		x.out = out
		err := x.sendAll(ctx)
		if err == nil {
			return x.write(api.ExportLine{End: &x.end})
		}
		code, message := httpapi.Status(err)
		_ = x.write(api.ExportLine{Cut: &api.Message{Status: code, Message: message}}) // the client may be gone
		return err
	})
	if err != nil {
		return &cutError{err}
	}
	return nil
}

func (x *exportOf) sendAll(ctx context.Context) error {
	user := api.ExportedUser{
		App: x.app.ID, UserToken: x.user, AsOf: api.AtMillis(x.profile.Anchor), RetentionDays: x.app.RetentionDays,
		OptedOut: []string{},
	}
	if x.row.ReceivedUntil > 0 || x.row.DeletedUntil > 0 {
		until := api.AtMillis(max(x.row.ReceivedUntil, x.row.DeletedUntil))
		user.DeletedUntil = &until
	}
	for _, t := range x.row.OptedOut.List() {
		user.OptedOut = append(user.OptedOut, string(t))
	}
	c, err := profile.ConsentsOf(x.Profiles).Read(ctx, x.app, x.user)
	if err != nil {
		return err
	}
	user.Consents = view.Consents(c)
	for _, e := range x.row.Exposures {
		user.Exposures = append(user.Exposures, api.ExportedExposure{Experiment: e.Experiment, Since: api.AtMillis(e.Since),
			Arm: e.Arm, At: api.AtMillis(e.At)})
	}
	if err := errors.Join(x.write(api.ExportLine{User: &user}),
		x.write(api.ExportLine{Profile: x.renderProfile()})); err != nil {
		return err
	}
	x.profile = affinity.Profile{}
	for _, l := range x.person.Links {
		link := view.Link(l)
		if err := x.write(api.ExportLine{Link: &link}); err != nil {
			return err
		}
	}
	window := history.Range{From: history.Pos{Time: x.window.From()}, To: history.End}
	err = x.person.ReadOriginals(ctx, x.holder.Events.Log(x.app.ID, x.app.Log), window, x.event)
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	return x.unchanged(ctx)
}

// event sends the line of a row, unless it does not count.
func (x *exportOf) event(token string, row store.LogRow, original []byte) error {
	of, other := x.row, ""
	if token != x.user {
		of, other = store.User{}, token // the events of other tokens that are read count
	} else if x.person.Dropped(row) {
		return nil
	}
	if row.Time > x.window.Now {
		return nil
	}
	text, err := lineOf(row, original, of, &x.end, func(l *api.ExportedEvent) {
		if e, err := row.Event(); err == nil {
			l.Purposes = x.person.Purposes(token, e, "", row.Receipt())
		}
	})
	if err == nil && text == nil { // it does not count
		return nil
	}
	if err != nil {
		return x.write(api.ExportLine{Fault: &api.ExportedFault{UserToken: other, Time: row.Time, ID: row.ID}})
	}
	_, err = x.out.Write(text)
	return err
}

// lineOf returns the line of a row, nil if the user's row excludes the event, and counts it
// in sent. form completes the event. The error says that the row cannot be read; sent counts that too.
func lineOf(row store.LogRow, original []byte, of store.User, sent *api.ExportEnd,
	form func(*api.ExportedEvent)) ([]byte, error) {
	e, err := row.Event()
	if err == nil && of.Excludes(e.Type, row.Time, row.Receipt()) {
		return nil, nil
	}
	var line api.ExportLine
	if err == nil {
		line, err = export.NewEvent(e, []byte(row.ID), original)
	}
	var text []byte
	if err == nil {
		form(line.Event)
		text, err = export.Encode(line)
	}
	if err != nil {
		sent.Faults++
		return nil, err
	}
	sent.Events++
	return text, nil
}

// unchanged refuses an export during which events were deleted or moved to another
// schema, or links have changed: it may lack some events that it should have.
func (x *exportOf) unchanged(ctx context.Context) error {
	if err := x.Profiles.CheckSchema(ctx, x.app); err != nil {
		return err
	}
	row, err := x.holder.Users.ReadUser(ctx, x.app.ID, x.user)
	if err != nil {
		return err
	}
	if row.Deleted() != x.row.Deleted() || row.OptedOut != x.row.OptedOut {
		return httpapi.Errorf(http.StatusConflict, "Events of the user were deleted during the export: ask again")
	}
	person, err := profile.IdentitiesOf(x.Profiles).Person(ctx, x.app, x.user, row)
	if err == nil && !person.SameAs(x.person) {
		err = httpapi.Errorf(http.StatusConflict, "The links of the user changed during the export: ask again")
	}
	return err
}

func (x *exportOf) write(l api.ExportLine) error {
	text, err := export.Encode(l)
	if err == nil {
		_, err = x.out.Write(text)
	}
	return err
}

func (x *exportOf) renderProfile() *api.Profile {
	p := x.profile
	v := &api.Profile{
		UserToken: x.user, LastEventAt: api.AtMillis(p.LastEventAt), AsOf: api.AtMillis(p.Anchor),
		StrategyVersion: x.app.StrategyVersion,
		Source:          api.SourceComputed, Total: p.Total, Truncated: p.Truncated(),
		Affinities: make([]api.Affinity, len(p.Affinities)),
	}
	if x.app.ScoringVersion != x.app.StrategyVersion {
		v.ScoringVersion = x.app.ScoringVersion
	}
	for i, a := range p.Affinities {
		v.Affinities[i] = api.Affinity{Facet: a.Facet, Operator: event.Operator, Value: a.Value, Score: a.Scores[0]}
		for j, h := range p.HalfLives {
			if v.Affinities[i].Scores == nil {
				v.Affinities[i].Scores = map[string]float64{}
			}
			v.Affinities[i].Scores[h.String()] = a.Scores[j]
		}
	}
	return v
}
