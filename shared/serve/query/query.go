// Package query answers questions about segments (package segment): which users meet
// a condition, how many, and how the scores of a filter are distributed. It reads the
// lists of the parts that the manifest names, and the profiles of the users whom these
// lists do not describe any more: those who changed since, and those whose profiles have
// expired. So answers are exact as of now, and cost what the named filters hold.
//
// Only the sizes of saved segments are written. The package is separate from segment
// because that package does no I/O.
package query

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// MaxPageChanges is how many profiles a page, or a count, reads at most.
	MaxPageChanges = 5_000
	// maxScanChanges is how many profiles a histogram or a list of all users reads at
	// most.
	maxScanChanges = 50_000
	// UpdateFrom is how many profiles a query reads before it orders an update of the
	// lists.
	UpdateFrom = 500
	// manifestAge is how long a process uses a manifest that it has read. A manifest
	// that another one has replaced is still right: its parts stay for an hour.
	manifestAge = 5 * time.Second
	// CacheBytes is how much of the parts' rows, and of the profiles of users who have
	// changed, a process keeps.
	CacheBytes = 64 << 20
	// scanners is how many parts are evaluated at a time, and readers how many reads of
	// profiles run.
	scanners = 2
	readers  = 4
	// orderBytes is what a histogram takes from the process's gate for each user whose
	// score it keeps: the lists of scores grow by copies.
	orderBytes = 16
)

// Builds orders what queries find missing. The functions' job runner does it.
type Builds interface {
	// Order orders an update of an app's lists, unless one is under way. It returns false if
	// there can be none at the moment.
	Order(ctx context.Context, app string) (bool, error)
	// Progress says in a sentence how far the app's build is, or that none runs.
	Progress(ctx context.Context, app string) (string, error)
}

// NotReadyError says that a query cannot be answered at the moment, and why.
type NotReadyError struct{ Message string }

// Error returns the message, which is for the client.
func (e *NotReadyError) Error() string { return e.Message }

// ErrOff says that segments are off for an app.
var ErrOff = errors.New("segments are off")

// Reader answers queries. It is safe for concurrent use.
type Reader struct {
	store    *store.Store
	profiles *profile.Engine
	builds   Builds
	now      func() time.Time // the engine's clock
	log      *slog.Logger
	rows     *rowCache

	mu    sync.Mutex
	views map[string]*view // by app
}

// New returns a Reader.
func New(s *store.Store, profiles *profile.Engine, builds Builds, now func() time.Time, log *slog.Logger) *Reader {
	return &Reader{store: s, profiles: profiles, builds: builds, now: now, log: log,
		rows: newRowCache(CacheBytes), views: map[string]*view{}}
}

// Page is a page of the users who meet a condition.
type Page struct {
	Total  int
	AsOf   int64 // ms
	Users  []User
	Cursor string // of the next page; "" after the last one
}

// User is a user who meets a condition, with the score of its first filter.
type User struct {
	Token string
	Score float64
	// Region is where the user lives, of an app whose users have regions of their own. Each alone sets it.
	Region string
}

// Page returns a page of at most limit users, behind a cursor if it is not empty. A
// limit of 0 only counts them. Errors are ErrOff, a *NotReadyError, a *fault.Error for
// the condition or the cursor, or of the store.
func (r *Reader) Page(ctx context.Context, app config.App, where segment.Condition, limit int,
	cursor string) (Page, error) {
	q, err := where.Compile(app.Strategy)
	if err != nil {
		return Page{}, err
	}
	at := r.now().UnixMilli()
	var after *segment.Cursor
	if cursor != "" {
		c, err := segment.ParseCursor(cursor, q, at)
		if err != nil {
			return Page{}, err
		}
		after = &c
	}
	e, err := r.begin(ctx, app, q, at, MaxPageChanges)
	if err != nil {
		return Page{}, err
	}
	most := 0
	if limit > 0 {
		most = limit + 1 // says whether another page follows
	}
	if err := e.scan(ctx, most, after); err != nil {
		return Page{}, err
	}
	page := Page{Total: e.total, AsOf: at}
	if limit == 0 {
		return page, nil
	}
	users, err := e.page(ctx, most)
	if err != nil {
		return Page{}, err
	}
	if len(users) > limit {
		users = users[:limit]
		next := segment.Cursor{Where: q.Where(), At: at, Order: users[limit-1].Order, Token: users[limit-1].Token}
		if after != nil {
			next.At = after.At
		}
		page.Cursor = next.String()
	}
	for _, u := range users {
		page.Users = append(page.Users, User{Token: u.Token, Score: q.Score(u.Order, at)})
	}
	return page, nil
}

// Each passes all users who meet a condition to fn, in no order, and returns the
// instant (ms) as of which they do. For the surface consent.Export they meet it by what counts there, too. Its errors
// are those of Page, and that of fn.
func (r *Reader) Each(ctx context.Context, app config.App, where segment.Condition,
	fn func(User) error) (asOf int64, err error) {
	regions := r.regions
	if !app.Residency.On() {
		regions = nil
	}
	rest := func() error { return nil }
	if app.Surface == consent.Export && app.Purposes.On() {
		if fn, rest, err = r.exported(ctx, app, where, fn); err != nil {
			return 0, err
		}
	}
	_, asOf, err = r.each(ctx, app, where, regions, fn)
	if err == nil {
		err = rest()
	}
	return asOf, err
}

// each is Each. It also returns how many users meet the condition, as a page counts them. regions finds the regions of
// users whose profiles were read; nil: nobody asks.
func (r *Reader) each(ctx context.Context, app config.App, where segment.Condition,
	regions func(context.Context, config.App, []segment.User) ([]string, error),
	fn func(User) error) (total int, asOf int64, err error) {
	q, err := where.Compile(app.Strategy)
	if err != nil {
		return 0, 0, err
	}
	at := r.now().UnixMilli()
	e, err := r.begin(ctx, app, q, at, maxScanChanges)
	if err != nil {
		return 0, 0, err
	}
	if err := e.scan(ctx, segment.MaxUsers, nil); err != nil {
		return 0, 0, err
	}
	lives := make([]string, len(e.read))
	if regions != nil {
		if lives, err = regions(ctx, app, e.read); err != nil {
			return 0, 0, err
		}
	}
	for i, u := range e.read {
		if err := fn(User{u.Token, q.Score(u.Order, at), lives[i]}); err != nil {
			return 0, 0, err
		}
	}
	for part, hits := range e.hits {
		slices.SortFunc(hits, func(a, b segment.Hit) int { return int(a.Ordinal) - int(b.Ordinal) })
		// Few rows of tokens at a time, so that memory stays bounded.
		for some := range slices.Chunk(hits, 16*segment.TokensPerRow) {
			ordinals := make([]uint16, len(some))
			for i, hit := range some {
				ordinals[i] = hit.Ordinal
			}
			tokens, err := e.tokens(ctx, part, ordinals)
			if err != nil {
				return 0, 0, err
			}
			for i, hit := range some {
				if tokens[i] == "" {
					continue // deleted since
				}
				if err := fn(User{tokens[i], q.Score(hit.Order, at), e.rooms[e.roomOf(part)].region}); err != nil {
					return 0, 0, err
				}
			}
		}
	}
	return e.total, at, nil
}

// Histogram returns how the scores of the one filter of a condition are distributed,
// and the instant (ms) of these scores. Its errors are those of Page.
func (r *Reader) Histogram(ctx context.Context, app config.App, filter segment.Filter) (segment.Summary, int64, error) {
	filter.Above = 0
	q, err := segment.Condition{Filter: &filter}.Compile(app.Strategy)
	if err != nil {
		return segment.Summary{}, 0, err
	}
	at := r.now().UnixMilli()
	e, err := r.begin(ctx, app, q, at, maxScanChanges)
	if err != nil {
		return segment.Summary{}, 0, err
	}
	h, charged := segment.NewHistogram(q.Terms[0], at), 0
	for i, p := range e.parts {
		err := ctx.Err()
		if err == nil {
			err = h.AddPart(p, e.lists[i][0], e.out[i])
		}
		if err == nil {
			err = admission.Take(ctx, orderBytes*int64(h.Users()-charged))
		}
		if err != nil {
			return segment.Summary{}, 0, err
		}
		charged = h.Users()
	}
	for _, u := range e.read {
		h.AddScore(q.Score(u.Order, at))
	}
	return h.Summary(), at, nil
}

// evaluation is a query that is under way.
type evaluation struct {
	*Reader
	*view
	app config.App
	q   *segment.Query
	at  int64 // ms

	lists [][][]segment.Cell // by part and term
	out   []*segment.Set     // by part: the users whom its lists do not describe

	listed map[string]store.ChangeSlot // since the view's slot: who changed, and when last

	total int
	hits  [][]segment.Hit // by part
	read  []segment.User  // who meet the condition by their profiles
}

// begin reads all that a query needs: lists, and the profiles of users who changed.
func (r *Reader) begin(ctx context.Context, app config.App, q *segment.Query, at int64,
	mostChanges int) (*evaluation, error) {
	v, err := r.view(ctx, app)
	if err != nil {
		return nil, err
	}
	e := &evaluation{Reader: r, view: v, app: app.For(consent.Segments), q: q, at: at}
	e.app.Consistency = config.Strong // a replica may not have what the list of changes says
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		e.lists, err = r.rows.lists(ctx, v, q, at)
		return err
	})
	g.Go(func() error {
		changed, err := e.overlay(ctx, mostChanges)
		if err != nil {
			return err
		}
		return e.judge(ctx, changed)
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	e.total = len(e.read)
	return e, nil
}

// scan evaluates the condition over the parts. It keeps at most most users of each.
func (e *evaluation) scan(ctx context.Context, most int, after *segment.Cursor) error {
	e.hits = make([][]segment.Hit, len(e.parts))
	edges := make([][]uint16, len(e.parts))
	totals := make([]int, len(e.parts))
	from, err := e.ordinalsAfter(ctx, after)
	if err != nil {
		return err
	}
	g := errgroup.Group{}
	g.SetLimit(min(scanners, runtime.GOMAXPROCS(0)))
	for i, p := range e.parts {
		if !slices.ContainsFunc(e.lists[i], func(cells []segment.Cell) bool { return len(cells) > 0 }) {
			continue
		}
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			in := segment.Input{Part: p, Lists: e.lists[i], Out: e.out[i], After: after, AfterOrdinal: from[i]}
			found, err := e.q.Scan(in, e.at, most)
			e.hits[i], edges[i], totals[i] = found.Hits, found.Edge, found.Total
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, n := range totals {
		e.total += n
	}
	var unsure []string
	for i, ordinals := range edges {
		tokens, err := e.tokens(ctx, i, ordinals)
		if err != nil {
			return err
		}
		unsure = append(unsure, slices.DeleteFunc(tokens, func(token string) bool { return token == "" })...)
	}
	known := len(e.read)
	if err := e.judge(ctx, unsure); err != nil {
		return err
	}
	e.total += len(e.read) - known
	if after != nil {
		e.read = slices.DeleteFunc(e.read, func(u segment.User) bool { return after.Passed(u.Order, u.Token) })
	}
	return nil
}

// page returns the first users of a page.
func (e *evaluation) page(ctx context.Context, most int) ([]segment.User, error) {
	users := segment.Candidates(e.parts, e.hits, e.read, most)
	byPart := make(map[int][]int, len(e.parts))
	for i, u := range users {
		if u.Part >= 0 {
			byPart[u.Part] = append(byPart[u.Part], i)
		}
	}
	var wanted []position
	for part, places := range byPart {
		for _, i := range places {
			wanted = append(wanted, position{part, users[i].Ordinal})
		}
	}
	tokens, err := e.tokensAt(ctx, wanted)
	if err != nil {
		return nil, err
	}
	for i := range users {
		if users[i].Part >= 0 {
			users[i].Token = tokens[position{users[i].Part, users[i].Ordinal}]
		}
	}
	users = slices.DeleteFunc(users, func(u segment.User) bool { return u.Token == "" }) // deleted since
	return segment.Page(users, most), nil
}
