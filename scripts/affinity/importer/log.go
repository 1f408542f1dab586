package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/judge/backtest"
)

// Files are what ReadLog reads.
type Files struct {
	Index   string // of the objects, and of events that name none
	Objects *Source
	Events  []*Source
	// Dates are the attributes of objects that the freshness of a ranking may go
	// by.
	Dates []string
	Now   time.Time // of reading: no event can be more than event.MaxAhead later
	// Prepare may change the objects before the log takes them. Nil: they stay.
	Prepare func([]backtest.Object)
	// SignedIn is called for each event that names the user who had signed in, in the order of the files. Nil:
	// nobody asks.
	SignedIn func(SignIn)
}

// SignIn says that an event under a token names the user who had signed in.
type SignIn struct {
	UserToken, AuthenticatedUserToken string
	Time                              int64 // ms
	ID                                string
}

// logEvent is an event of a file.
type logEvent struct {
	backtest.Event
	authenticatedUserToken string
}

// ReadLog reads files as an import takes them into a log for backtests, without
// an engine. Every attribute of the objects is a facet, as in an index without
// settings. It prints progress and bad lines. Unlike an import it fails if a
// line is bad: figures that leave out a part of the log would mislead. But it
// leaves out events with a time that no event can have, such as 1970-01-01, and
// counts them: large files have some, and one of them would move the cut.
func ReadLog(ctx context.Context, f Files, progress io.Writer) (log *backtest.Log, leftOut int, err error) {
	bad := &tally{}
	var objects []backtest.Object
	f.Objects.ofObjects()
	err = readLines(ctx, f.Objects, "objects", progress, bad, f.parseObject,
		func(o backtest.Object) { objects = append(objects, o) })
	if err != nil {
		return nil, 0, err
	}
	if len(objects) == 0 && bad.unreadable() == 0 {
		return nil, 0, fmt.Errorf("%s holds no objects", f.Objects.name)
	}
	if bad.unreadable() == 0 {
		if f.Prepare != nil {
			f.Prepare(objects)
		}
		if log, err = backtest.NewLog(f.Index, objects); err != nil {
			return nil, 0, err
		}
	}
	ids := map[[16]byte]struct{}{}
	for _, o := range objects {
		bad.once(remember(ids, sha128(o.ID)))
	}
	seen := map[[16]byte]struct{}{}
	for _, src := range f.Events {
		err := readLines(ctx, src, "events", progress, bad, f.parseEvent, func(e logEvent) {
			bad.once(remember(seen, keyOf(enrich.Place{User: e.User, Time: e.Time, ID: e.ID})))
			if log == nil || e.Type == event.InstantSearch { // the engine drops such events
				return
			}
			log.Add(e.Event)
			if known := e.authenticatedUserToken; known != "" && f.SignedIn != nil {
				f.SignedIn(SignIn{e.User, known, e.Time, e.ID})
			}
		})
		if err != nil {
			return nil, 0, err
		}
	}
	if bad.unreadable() > 0 {
		return nil, 0, bad.unread()
	}
	fmt.Fprintln(progress, bad.counts().Text("line", "taken", "equal to another line"))
	return log, bad.counts().Refused, nil
}

// ReadObjects reads a catalog as an import takes it and passes on the filters of
// each object, in the order of the file. Every attribute is a facet, as in an index
// without settings. It fails if a line is bad.
func ReadObjects(ctx context.Context, src *Source, progress io.Writer, add func([]event.Filter)) error {
	bad := &tally{}
	n := 0
	src.ofObjects()
	err := readLines(ctx, src, "objects", progress, bad, Files{}.parseObject, func(o backtest.Object) {
		n++
		add(o.Filters)
	})
	return bad.ended(err, n, src, "objects")
}

// ended is the error of a command that fails if a line is bad or if it has read nothing.
func (t *tally) ended(err error, n int, src *Source, what string) error {
	switch {
	case err != nil:
		return err
	case t.counts().Refused > 0:
		return t.unread()
	case n == 0:
		return fmt.Errorf("%s holds no %s", src.name, what)
	}
	return nil
}

// unread says that the bad lines ended the command.
func (t *tally) unread() error {
	return fmt.Errorf("%d of %s cannot be read%s: correct or remove them", t.unreadable(),
		cli.Count(t.counts().Read, "line"), t.shown())
}

// LeftOutError is the number of lines that ReadLog left out.
type LeftOutError int

// Error counts the lines and says that all others count.
func (e LeftOutError) Error() string {
	shown := ""
	if e > maxBadLines {
		shown = fmt.Sprintf(" (the first %d are shown above)", maxBadLines)
	}
	return cli.Count(int(e), "line") + " left out" + shown + ", because no event can have such a time; all others count"
}

func (f Files) parseObject(text []byte) (o backtest.Object, err error) {
	if fault := objectFault(line{text: text}); fault != "" {
		return o, errors.New(fault)
	}
	action, err := decodeObject(text)
	if err != nil {
		return o, err
	}
	record := action.Record
	o.ID = action.ObjectID
	for _, attribute := range f.Dates {
		if ms, ok := catalog.Date(record, attribute); ok {
			if o.Dates == nil {
				o.Dates = map[string]int64{}
			}
			o.Dates[attribute] = ms
		}
	}
	o.Filters, err = catalog.Filters(record, catalog.Settings{})
	return o, err
}

// decodeObject returns a record as the catalog would store it.
func decodeObject(text []byte) (catalog.Action, error) {
	body := append(append([]byte(`{"requests":[{"action":"updateObject","body":`), text...), "}]}"...)
	actions, err := catalog.DecodeBatch(body)
	if err != nil {
		return catalog.Action{}, err
	}
	return actions[0], nil
}

func (f Files) parseEvent(text []byte) (logEvent, error) {
	e, err := event.Decode(text, event.Rules{Now: f.Now, Ahead: event.MaxAhead, History: true, Index: f.Index})
	if err == nil && e.Received && e.Type != event.InstantSearch {
		err = errors.New("timestamp is missing: a backtest needs the time of every event")
	}
	var refusal *event.Refusal
	if errors.As(err, &refusal) {
		err = errors.New(refusal.Message)
	}
	if err != nil {
		return logEvent{}, err
	}
	return logEvent{backtest.Event{
		User: e.UserToken, Time: e.Time, ID: e.ID(), Type: e.Type, Name: e.Name,
		Index: e.Index, ObjectIDs: e.ObjectIDs, Filters: e.Filters,
	}, e.AuthenticatedUserToken}, nil
}

// piece is some lines that are parsed together.
type piece[T any] struct {
	text  []byte
	ends  []int  // of each line in text
	lines []line // without their texts

	parsed []T
	errs   []error
	done   chan struct{}
}

const (
	pieceLines = 500
	pieceBytes = 1 << 20
)

// readLines parses the lines of src, several at a time, and adds what they hold
// in the order of the file.
func readLines[T any](ctx context.Context, src *Source, what string, progress io.Writer, bad *tally,
	parse func([]byte) (T, error), add func(T)) error {
	m := newMeter(progress, what, src)
	defer m.finish()
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, func() { src.Interrupt(ctx.Err()) })()
	pieces := make(chan *piece[T], runtime.GOMAXPROCS(0))
	group.Go(func() error {
		defer close(pieces)
		for {
			p, err := nextPiece[T](src)
			if len(p.lines) > 0 {
				go p.parse(parse)
				select {
				case pieces <- p:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	group.Go(func() error {
		for p := range pieces {
			<-p.done
			bad.add(Tally{Read: len(p.errs)})
			for i, err := range p.errs {
				switch l := p.lines[i]; {
				case l.skipped:
					bad.add(Tally{Skipped: 1})
				case l.reason() != "":
					bad.refuseLine(m, src, l)
				case err != nil:
					bad.refuse(m, src, l.number, err.Error())
				default:
					add(p.parsed[i])
				}
			}
			m.add(len(p.errs))
		}
		return nil
	})
	err := group.Wait()
	bad.printKinds(m, src)
	bad.clearKinds()
	return err
}

// nextPiece reads the next lines. With an error, those before it.
func nextPiece[T any](src *Source) (*piece[T], error) {
	p := &piece[T]{done: make(chan struct{})}
	for len(p.lines) < pieceLines && len(p.text) < pieceBytes {
		l, err := src.next()
		if err != nil {
			return p, err
		}
		p.text = append(p.text, l.text...)
		p.ends = append(p.ends, len(p.text))
		l.text = nil
		p.lines = append(p.lines, l)
	}
	return p, nil
}

func (p *piece[T]) parse(parse func([]byte) (T, error)) {
	defer close(p.done)
	p.parsed, p.errs = make([]T, len(p.ends)), make([]error, len(p.ends))
	start := 0
	for i, end := range p.ends {
		if l := p.lines[i]; !l.skipped && l.reason() == "" {
			p.parsed[i], p.errs[i] = parse(p.text[start:end:end])
		}
		start = end
	}
}
