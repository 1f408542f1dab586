package profile

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile/dictionary"
	"github.com/affinityengine/affinity/shared/profile/location"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// Engine applies events, serves profiles and deletes users. It is safe for
// concurrent use.
type Engine struct {
	env      *env
	logs     *logs
	writer   *writer
	reader   *reader
	folder   *folder
	bulk     *bulk
	deletion *deletion
	sweeper  *sweeper
	sampler  *sampler
	home     *home
}

// env holds the dependencies of every part.
type env struct {
	store    *store.Store
	now      func() time.Time
	log      *slog.Logger
	limits   limits
	slack    time.Duration
	counters *Counters
	// memory is what the scorers of all requests hold together. A user who does not
	// fit is computed alone.
	memory *affinity.Memory
	serial chan struct{} // an item for each user who is computed alone
	// recent is what refreshes keep of users for the next ones.
	recent *cache.Memory
	// dictionaries are those that blocks name.
	dictionaries *dictionary.Cache
	// region is that of the store, and regions has the engines of all; nil in a deployment
	// without regions.
	region  string
	regions *regions
	engine  *Engine // of the store
	// exposures are those of the engines of all regions.
	exposures *Exposures
}

// MinSlack and MaxSlack bound the slack of deletions: how much later than its own clock
// a deletion covers receipts. The clocks of the machines that stamp receipts may be
// ahead of the clock of the one that deletes, by less than the slack, without an event
// from before the deletion surviving it. A user who returns counts when it is over.
// MinSlack serves where all have one clock. Rows of the log tell receipts up to MaxSlack
// apart.
const (
	MinSlack = time.Millisecond
	MaxSlack = event.MaxAhead
)

// SetSlack sets the slack of the engine's deletions, which is MinSlack otherwise. Call it
// before the engine is used.
func (e *Engine) SetSlack(slack time.Duration) {
	for _, at := range e.all() {
		at.env.slack = min(max(slack, MinSlack), MaxSlack)
	}
}

// compile prepares the strategy of an app for scoring within the engine's bounds.
func (v *env) compile(app config.App) *affinity.Compiled {
	return affinity.Compile(app.Strategy).Within(v.limits.bounds)
}

// New makes an Engine. apps reads the current configuration. The engine calls it
// only when it finds that the cached configuration is out of date. cached must be
// the cache from which the requests take their configuration. For a store of several regions
// the engine serves the apps of all; see Join.
func New(s *store.Store, apps config.Source, cached *config.Cached, now func() time.Time,
	log *slog.Logger) *Engine {
	v := &env{
		store: s, now: now, log: log, limits: defaultLimits, slack: MinSlack,
		memory: affinity.NewMemory(heldWithin(admission.MemoryLimit()), heldFree), serial: make(chan struct{}, maxSerial),
		recent:       cache.NewMemory(Recent(admission.MemoryLimit())),
		dictionaries: dictionary.NewCache(s.Dictionaries, Dictionaries(admission.MemoryLimit()), now, log),
		counters:     &Counters{},
	}
	all, first := s.Regions()
	if all == nil {
		e := newEngine(v, apps, cached)
		v.exposures = newExposures(e)
		return e
	}
	engines := make(map[string]*Engine, len(all))
	for name, at := range all {
		there := *v
		there.store, there.dictionaries = at, dictionary.NewCache(at.Dictionaries,
			Dictionaries(admission.MemoryLimit())/int64(len(all)), now, log)
		engines[name] = newEngine(&there, apps, cached)
	}
	join(first, engines, location.New(s.In, s.Home(), now))
	return engines[first]
}

func newEngine(v *env, apps config.Source, cached *config.Cached) *Engine {
	l := &logs{env: v, fresh: apps.App, cached: cached.App}
	l.appends = newAppends(l)
	t := &tickets{env: v}
	c := &computer{env: v, logs: l}
	f := &folder{env: v, logs: l, tickets: t}
	o := &orphans{env: v}
	ch := &changeList{env: v}
	ln := &linker{env: v, logs: l, tickets: t, changes: ch}
	e := &Engine{
		env: v, logs: l, folder: f,
		writer: &writer{env: v, logs: l, tickets: t, computer: c, folder: f, flights: newFlights(), changes: ch,
			adder: &adder{env: v, bases: cache.ValuesOf[storedBase](v.recent)}, tails: cache.ValuesOf[*tail](v.recent),
			refreshed: semaphore.NewWeighted(maxRefreshed), refreshedPersons: semaphore.NewWeighted(maxRefreshed),
			most: maxRefreshed, linker: ln},
		reader:   &reader{env: v, logs: l, tickets: t, computer: c, folder: f, current: current},
		bulk:     &bulk{env: v, logs: l, tickets: t, computer: c, folder: f, orphans: o, linker: ln},
		deletion: &deletion{env: v, logs: l, tickets: t, orphans: o, changes: ch, linker: ln},
		sweeper:  &sweeper{env: v, logs: l},
		sampler:  &sampler{env: v, logs: l},
	}
	e.home = &home{e.writer, e.reader, e.deletion}
	v.engine = e
	return e
}

// Outcome counts the events of a message by their fate.
type Outcome struct {
	Applied int // in the log, and counted by every read from now on
	Deleted int // dropped: they were received before the deletion of their user
	Refused int // dropped: their user has opted out of their types
	// Withheld counts those dropped because they count for no purpose that their users grant.
	Withheld int
	// Ahead counts those of the events before that a wrong clock keeps from counting: they are
	// further ahead of the engine's clock than a right one allows, or covered by the deletion
	// of a clock that was ahead, which ends with the first of them.
	Ahead int
}

// Add adds the events of another outcome.
func (o *Outcome) Add(more Outcome) {
	o.Applied, o.Deleted, o.Refused, o.Ahead = o.Applied+more.Applied, o.Deleted+more.Deleted,
		o.Refused+more.Refused, o.Ahead+more.Ahead
	o.Withheld += more.Withheld
}

// Apply writes events to the log and refreshes the profile of each of their
// users. After an error the caller must apply the events again. If one user is
// faulty, Apply refreshes the others and returns the error of that user.
func (e *Engine) Apply(ctx context.Context, app config.App, events []store.LogEvent) (Outcome, error) {
	at, err := e.operations(app)
	if err != nil {
		return Outcome{}, err
	}
	return at.apply(ctx, app, e.env.doubt(events))
}

// SetLater sets what makes sure that a marked user is refreshed at the end of a write
// window. Without it the engine knows no windows. Call it before the engine is used.
func (e *Engine) SetLater(later Later) {
	for _, at := range e.all() {
		at.writer.later = later
	}
}

// RefreshMarked stores the profile of a user who was marked, unless the stored one is
// valid, as after another task or a read, and reports whether it computed one.
func (e *Engine) RefreshMarked(ctx context.Context, app config.App, user string) (bool, error) {
	at, err := e.operations(app)
	if err != nil {
		return false, err
	}
	return at.refreshMarked(ctx, app, user)
}

// Import writes events to the log and leaves a marker for each of their users, so
// that the next read computes the profile. History arrives in pieces, and a
// refresh for each piece would read a user's log many times.
func (e *Engine) Import(ctx context.Context, app config.App, events []store.LogEvent) (Outcome, error) {
	at, err := e.operations(app)
	if err != nil {
		return Outcome{}, err
	}
	return at.importEvents(ctx, app, e.env.doubt(events))
}

// Abandon leaves a marker for each user of the events. Call it before giving up a
// message for which Apply failed: any part of the message may be in the log. An error
// of type Faulty names users who have their marker, and a manifest of a newer version:
// its blocks may cover an event that they do not hold. All others have theirs.
func (e *Engine) Abandon(ctx context.Context, app config.App, events []store.LogEvent) error {
	at, err := e.operations(app)
	if err != nil {
		return err
	}
	return at.abandon(ctx, app, e.env.doubt(events))
}

// Read returns a user's profile as of now. If the stored profile is not valid, Read
// computes one from blocks and log and stores it. Known is false for a user
// without an event in the window. limit bounds the number of decoded affinities; 0
// means all. Total counts all affinities. With config.Strong as the consistency of
// app, Read, ReadRanking and ReadMany read the cluster that is written; otherwise
// they may answer from a replica.
func (e *Engine) Read(ctx context.Context, app config.App, user string, limit int) (Result, error) {
	at, err := e.operations(app)
	if err != nil {
		return Result{}, err
	}
	return at.read(ctx, app, user, store.UserProfile, limit)
}

// Refresh computes a user's profile from blocks and log, whatever is stored, stores it
// and returns it. Known is false for a user without an event in the window.
func (e *Engine) Refresh(ctx context.Context, app config.App, user string) (Result, error) {
	at, err := e.operations(app)
	if err != nil {
		return Result{}, err
	}
	return at.computeStored(ctx, app, user)
}

// ReadRanking is Read with the user's session and all affinities: what a ranking
// needs to know of a user. A bulk recompute stores profiles without sessions, so
// the first such read after it computes both and stores them.
func (e *Engine) ReadRanking(ctx context.Context, app config.App, user string) (Result, error) {
	at, err := e.operations(app)
	if err != nil {
		return Result{}, err
	}
	return at.read(ctx, app, user, store.UserSession, 0)
}

// ReadEach is Read for many users. It reads some at a time, calls fn for each result,
// one at a time in no particular order, and does not keep the result. An error of fn
// ends the reads. An error of type Faulty names users for whom it did not call fn; all
// others are read.
func (e *Engine) ReadEach(ctx context.Context, app config.App, users []string, limit int,
	fn func(user string, result Result) error) error {
	at, err := e.operations(app)
	if err != nil {
		return err
	}
	return at.readEach(ctx, app, users, limit, fn)
}

// ReadStored passes the stored form of users' profiles to fn, in the order of the users,
// each once: of the stored one if it is valid and of the last ticket of its row, and
// otherwise of one that it computes and stores. So each counts every event whose writer
// had drawn a ticket. It leaves out users who have no row or are deleted, and anonymous tokens that are
// linked at the moment: these are part of the known users. Of an app whose users have regions of their own it leaves
// out those who do not live in app.Region. An error of type
// Faulty names others that it left out; an error of fn ends the reads.
func (e *Engine) ReadStored(ctx context.Context, app config.App, users []string,
	fn func(user string, stored []byte) error) error {
	at, err := e.operations(app)
	if err != nil {
		return err
	}
	return at.readStored(ctx, app, users, func(user string, stored []byte, _ int64) error { return fn(user, stored) })
}

// ReadChanged is a conditional ReadStored. users maps each user to the ticket of the
// caller's copy of the profile, 0 for none. fn gets nil for a user whose row still has that
// ticket: the caller's copy is current, because whatever changes a profile draws a ticket
// before it answers. For the others fn gets the profile and the ticket of the row. Users
// come in no order.
func (e *Engine) ReadChanged(ctx context.Context, app config.App, users map[string]int64,
	fn func(user string, stored []byte, ticket int64) error) error {
	at, err := e.operations(app)
	if err != nil {
		return err
	}
	return at.readChanged(ctx, app, users, fn)
}

// Admit takes the memory of a row and of its whole profile, decoded, from the gate of
// the process, for the request that the context belongs to. Reads of the Engine do so
// themselves.
func (e *Engine) Admit(ctx context.Context, row store.User) error { return e.reader.admit(ctx, row, 0) }

// Compute computes profiles from blocks and log and stores nothing. It returns,
// for each user, one profile for each strategy. An error of type Faulty names users
// who are not among them; the profiles of all others are valid.
func (e *Engine) Compute(ctx context.Context, app config.App, users []string,
	strategies ...*affinity.Compiled) (map[string][]affinity.Profile, error) {
	profiles, _, err := e.ComputeCounting(ctx, app, users, strategies...)
	return profiles, err
}

// Reading is what a computation under one strategy read.
type Reading struct {
	Events int // of blocks and of the log
	Blocks int // of histories
}

// ComputeCounting is Compute, and says what it read.
func (e *Engine) ComputeCounting(ctx context.Context, app config.App, users []string,
	strategies ...*affinity.Compiled) (map[string][]affinity.Profile, Reading, error) {
	var read Reading
	at, err := e.operations(app)
	if err != nil {
		return nil, read, err
	}
	profiles, err := at.compute(ctx, app, users, strategies, &read)
	return profiles, read, err
}

// CheckSchema returns ErrSchemaChanged if the schemas of the app's log have
// changed since the caller read app. A read of the log under app may then be
// incomplete, even if the schemas have changed back. Call CheckSchema after
// reading the log and before using the result.
func (e *Engine) CheckSchema(ctx context.Context, app config.App) error {
	return e.logs.check(ctx, app)
}

// Counters returns the engine's counters.
func (e *Engine) Counters() *Counters { return e.env.counters }
