package console

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/clientscript"
)

func init() {
	pages = append(pages,
		page{pattern: "GET /console/data", section: "data", template: "data", load: loadData},
		page{pattern: "GET /console/data/tail", section: "data", template: "data", fragment: "tail", poll: true,
			load: loadTail},
		page{pattern: "POST /console/data/event", section: "data", template: "data", fragment: "sent", load: sendEvent},
		page{pattern: "POST /console/data/import", section: "data", template: "imported", upload: true, load: importFile},
	)
}

// data is what the page about incoming events shows.
type data struct {
	Now     time.Time
	Seen    part[api.SeenEvents]
	Recent  part[api.RecentEvents]
	Tail    bool // the session may see events of users
	Form    eventForm
	Sent    string // the user of the event that was just sent
	Problem string // with it
	Names   []string
	Busiest int64 // the highest count of Seen
	Facets  int64
}

// eventForm is the form of a test event.
type eventForm struct{ Type, Name, Index, User, About string }

const (
	seenDays  = 7
	tailLines = 30
)

func loadData(v *visit) (any, error) {
	v.title, v.command = "Data in", "affinity events seen --days 7\naffinity events tail --follow"
	return fillData(v, &data{Form: eventForm{Type: api.EventView, User: "test-user"}})
}

func fillData(v *visit, d *data) (any, error) {
	ctx, a := v.Context(), &asks{}
	d.Now, d.Tail = v.now(), v.may(auth.Admin)
	ask(a, &d.Seen, func() (api.SeenEvents, error) { return v.engine.Events().Seen(ctx, seenDays) })
	if d.Tail {
		ask(a, &d.Recent, func() (api.RecentEvents, error) {
			return v.engine.Events().Recent(ctx, api.RecentEventsQuery{Limit: tailLines})
		})
	}
	a.wait()
	for _, e := range d.Seen.Got.Events {
		d.Names, d.Busiest = append(d.Names, e.EventName), max(d.Busiest, e.Count)
	}
	for _, f := range d.Seen.Got.Facets {
		d.Facets = max(d.Facets, f.Count)
	}
	slices.Sort(d.Names)
	d.Names = slices.Compact(d.Names)
	if d.Form.Index == "" && len(d.Recent.Got.Events) > 0 {
		d.Form.Index = d.Recent.Got.Events[0].Index
	}
	return d, nil
}

// loadTail returns the page with the live tail alone, if htmx asks for it.
func loadTail(v *visit) (any, error) {
	if v.Header.Get("Hx-Request") == "" {
		return loadData(v)
	}
	d, a := &data{Now: v.now()}, &asks{}
	ask(a, &d.Recent, func() (api.RecentEvents, error) {
		return v.engine.Events().Recent(v.Context(), api.RecentEventsQuery{Limit: tailLines})
	})
	a.wait()
	return d, nil
}

// Of returns a count as a share of the highest one.
func (d *data) Of(count, highest int64) float64 {
	if highest == 0 {
		return 0
	}
	return float64(count) / float64(highest)
}

// Script returns the element by which a page loads the client script of an engine.
func (*data) Script(url string) string { return clientscript.Tag(url) }

// sendEvent sends the event of the form as a page would.
func sendEvent(v *visit) (any, error) {
	v.title = "Data in"
	f := v.PostForm
	d := &data{Form: eventForm{f.Get("type"), strings.TrimSpace(f.Get("name")), strings.TrimSpace(f.Get("index")),
		strings.TrimSpace(f.Get("user")), strings.TrimSpace(f.Get("about"))}}
	event := api.Event{EventType: d.Form.Type, EventName: d.Form.Name, Index: d.Form.Index, UserToken: d.Form.User}
	for _, one := range strings.Split(d.Form.About, ",") {
		if one = strings.TrimSpace(one); strings.Contains(one, ":") {
			event.Filters = append(event.Filters, strings.ReplaceAll(one, "%", "%25"))
		} else if one != "" {
			event.ObjectIDs = append(event.ObjectIDs, one)
		}
	}
	v.command = sendCommand(event)
	err := v.engine.Events().Send(v.Context(), event)
	if refused, ok := asRefusal(err); ok {
		d.Problem = refused.Message
		return fillData(v, d)
	}
	if err != nil {
		return nil, err
	}
	d.Sent = event.UserToken
	return fillData(v, d)
}

// sendCommand is the command line that sends an event.
func sendCommand(e api.Event) string {
	words := []string{"affinity events send", "--type=" + shellArg(e.EventType), "--name=" + shellArg(e.EventName),
		"--index=" + shellArg(e.Index)}
	for _, id := range e.ObjectIDs {
		words = append(words, "--object="+shellArg(id))
	}
	for _, filter := range e.Filters {
		words = append(words, "--filter="+shellArg(filter))
	}
	return strings.Join(append(words, userArg(e.UserToken)), " ")
}

// importAnswer is what the page about an import shows.
type importAnswer struct {
	api.ImportAnswer        // with the first refused lines
	Lines            int    // that were sent
	NotTaken         int    // how many were refused
	Problem          string // why later lines were not sent
	Enough           bool   // the page sends no more
}

const (
	shownLines = 100
	// An import from a page ends after maxRefused refused lines, which are all of a file of another
	// kind, and after maxLines lines, more than maxUpload holds of events: the rest is blank.
	maxRefused = 1_000
	maxLines   = 200_000
)

// errEnough ends an import.
var errEnough = errors.New("enough lines")

// importFile imports the lines of the form or of its file.
func importFile(v *visit) (any, error) {
	v.title, v.command = "Import", "affinity import --index INDEX FILE"
	text := v.PostForm.Get("lines")
	if file, header, err := v.FormFile("file"); err == nil {
		defer file.Close()
		if header.Size > 0 {
			return importLines(v, file)
		}
	}
	if strings.TrimSpace(text) == "" {
		return nil, &api.Error{Status: http.StatusUnprocessableEntity,
			Message: "Choose a file, or paste lines: one event as JSON in each"}
	}
	return importLines(v, strings.NewReader(text))
}

// importLines imports lines, and shows the answer, also of an import that ended early.
func importLines(v *visit, r io.Reader) (any, error) {
	in := bufio.NewReader(r)
	if magic, err := in.Peek(2); err == nil && string(magic) == "\x1f\x8b" {
		return nil, &api.Error{Status: http.StatusUnprocessableEntity,
			Message: "This file is compressed with gzip, and a page imports plain lines alone: " +
				"unpack it, or import it with the command affinity import, which takes gzip and files of any size"}
	}
	answer := &importAnswer{}
	err := v.engine.Events().ImportEach(v.Context(), v.PostForm.Get("index"), in,
		func(further api.ImportAnswer, lines int) error {
			answer.Lines, answer.NotTaken = lines, answer.NotTaken+len(further.Refused)
			further.Refused = further.Refused[:min(len(further.Refused), shownLines-len(answer.Refused))]
			answer.Add(further)
			if answer.NotTaken >= maxRefused || lines >= maxLines {
				return errEnough
			}
			return nil
		})
	if err != nil && answer.Lines == 0 {
		return nil, err
	}
	switch refused, ok := errors.AsType[*api.Error](err); {
	case errors.Is(err, errEnough) && answer.NotTaken >= maxRefused:
		answer.Enough, answer.Problem = true, "a page sends no more lines once 1,000 were refused"
	case errors.Is(err, errEnough):
		answer.Enough, answer.Problem = true, "a page sends no more than 200,000 lines"
	case ok:
		answer.Problem = refused.Message
	case err != nil:
		answer.Problem = "the engine did not answer"
	}
	return answer, nil
}

// More is how many refused lines are not shown.
func (a importAnswer) More() int { return a.NotTaken - len(a.Refused) }

// Plural writes a number with its noun.
func (importAnswer) Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
