package client

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/affinityengine/affinity/shared/api"
)

// Send sends 1 to api.MaxEvents events, all or none. They are in the
// profiles of their users within seconds. Requires a key with the permission search.
//
// Events with a timestamp count once, however often they are sent. If an event
// has none, the request is repeated only after the engine answered that it did
// not accept the request.
func (c Events) Send(ctx context.Context, events ...api.Event) error {
	when := always
	if slices.ContainsFunc(events, func(e api.Event) bool { return e.Timestamp == 0 }) {
		when = refused
	}
	return c.call(ctx, when, http.MethodPost, "/1/events", api.EventsRequest{Events: events}, nil)
}

// Refused returns the latest refused requests and counts all of them. The
// key needs the permission recommendation.
func (c Events) Refused(ctx context.Context) (api.RefusedEvents, error) {
	var answer api.RefusedEvents
	err := c.call(ctx, always, http.MethodGet, "/1/events/refused", nil, &answer)
	return answer, err
}

// Names returns the types of events that the app has given names of track calls. The key
// needs the permission settings.
func (c Events) Names(ctx context.Context) (api.TrackNames, error) {
	var answer api.TrackNames
	err := c.call(ctx, always, http.MethodGet, "/1/track-names", nil, &answer)
	return answer, err
}

// SetNames gives names of track calls types of events, and returns all names that have one.
// The key needs the permission settings.
func (c Events) SetNames(ctx context.Context, change api.TrackNames) (api.TrackNames, error) {
	var answer api.TrackNames
	err := c.call(ctx, always, http.MethodPut, "/1/track-names", change, &answer)
	return answer, err
}

// Seen returns what the accepted events of the last days contained, today included;
// 0: of api.DefaultSeenDays. Requires a key with the permission recommendation.
func (c Events) Seen(ctx context.Context, days int) (api.SeenEvents, error) {
	query := url.Values{}
	if days != 0 {
		query.Set("days", strconv.Itoa(days))
	}
	var answer api.SeenEvents
	err := c.call(ctx, always, http.MethodGet, withQuery("/1/events/seen", query), nil, &answer)
	return answer, err
}

// Recent returns a sample of the events that were received in the last 15 minutes,
// the newest first. Requires a key with the permission admin.
func (c Events) Recent(ctx context.Context, q api.RecentEventsQuery) (api.RecentEvents, error) {
	query := url.Values{}
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.After != "" {
		query.Set("after", q.After)
	}
	var answer api.RecentEvents
	err := c.call(ctx, always, http.MethodGet, withQuery("/1/events/recent", query), nil, &answer)
	return answer, err
}

// Import sends events of any age in one request, one JSON event a line,
// at most api.MaxImportLines lines and api.MaxImportBody bytes. index is the
// index of events that name none; it may be empty. Requires a key with the permission
// admin.
//
// The request may be repeated. Events without a timestamp then count twice.
func (c Events) Import(ctx context.Context, index string, lines []byte) (api.ImportAnswer, error) {
	path := importPath
	if index != "" {
		path += "?" + url.Values{"index": {index}}.Encode()
	}
	return c.importLines(ctx, path, lines)
}

const importPath = "/1/events/import"

// Restore is ImportEvents of lines of an export or an archive, which keep the
// times of receipt that they say: an event stays deleted if its user was deleted since.
// It changes nothing in a log that has the events.
func (c Events) Restore(ctx context.Context, lines []byte) (api.ImportAnswer, error) {
	return c.importLines(ctx, importPath+"?receipts=kept", lines)
}

func (c *Client) importLines(ctx context.Context, path string, lines []byte) (api.ImportAnswer, error) {
	var answer api.ImportAnswer
	err := c.callRaw(ctx, always, http.MethodPost, path, lines, &answer)
	return answer, err
}

// EndImport says that an import has ended: the client has the answers to all of its
// requests. The engine then folds the histories of users and builds crowd statistics, which
// it otherwise does after a minute without an import. Ask again with the At of the answer to
// learn how far these jobs are. The request may be repeated. Requires a key with the
// permission admin.
func (c Events) EndImport(ctx context.Context, request api.ImportEndRequest) (api.ImportEnd, error) {
	var answer api.ImportEnd
	err := c.call(ctx, always, http.MethodPost, "/1/imports/end", request, &answer)
	return answer, err
}

// A request of ImportAll is well below the limits, so that it is answered soon.
const (
	chunkLines = 2000
	chunkBytes = 4_000_000
)

// ImportAll reads events from r to its end, one JSON event a line, as Text reads
// them, and imports them in several requests, one after the other. The answer
// adds up theirs, and refused lines have their numbers in r. With an error, the
// answer is that of the requests before it. Importing r again is harmless for
// events with a timestamp, which count once. EndImport says that nothing follows.
func (c Events) ImportAll(ctx context.Context, index string, r io.Reader) (api.ImportAnswer, error) {
	total := api.ImportAnswer{Refused: []api.RefusedLine{}}
	err := c.Events().ImportEach(ctx, index, r, func(answer api.ImportAnswer, _ int) error {
		total.Add(answer)
		return nil
	})
	return total, err
}

// ImportEach is ImportAll for a caller that shows how far the import is, or ends it: after
// each request it calls each with its answer, whose refused lines have their numbers in r, and
// the number of lines that were sent so far. It ends with the first error of each, and
// returns that.
func (c Events) ImportEach(ctx context.Context, index string, r io.Reader,
	each func(answer api.ImportAnswer, lines int) error) error {
	lines, err := scan(r)
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	var chunk []byte
	sent, read := 0, 0 // lines
	flush := func() error {
		answer, err := c.Events().Import(ctx, index, chunk)
		if err != nil {
			return fmt.Errorf("import lines %d to %d: %w", sent+1, read, err)
		}
		for i := range answer.Refused {
			answer.Refused[i].Line += sent
		}
		chunk, sent = chunk[:0], read
		return each(answer, sent)
	}
	for lines.Scan() {
		if read-sent == chunkLines || len(chunk) > 0 && len(chunk)+len(lines.Bytes()) >= chunkBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		chunk = append(append(chunk, lines.Bytes()...), '\n')
		read++
	}
	if read > sent {
		if err := flush(); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read events beyond line %d: %w", read, err)
	}
	return nil
}

// scan returns a scanner of the lines of r, see Text.
func scan(r io.Reader) (*bufio.Scanner, error) {
	in, err := Text(r)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, api.MaxImportBody-1)
	return lines, nil
}
