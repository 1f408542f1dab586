package attack

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

// richObjects sends a request of 1,000 events that each name 20 objects of 1,000
// filters.
func richObjects(ctx context.Context, t *target, to answers) error {
	if _, err := t.evil.Catalog().SetSettings(ctx, "rich",
		api.Settings{AttributesForFaceting: []string{"tags"}}); err != nil {
		return err
	}
	for i := range 20 {
		var tags []string
		for k := range 1000 {
			tags = append(tags, fmt.Sprintf(`"tag %d of the object %d, as rich as it may be"`, k, i))
		}
		body := fmt.Sprintf(`{"requests":[{"action":"addObject","body":{"objectID":"%d","tags":[%s]}}]}`, i,
			strings.Join(tags, ","))
		t.persist(ctx, "/1/indexes/rich/batch", pack(body), to)
	}
	now := time.Now().UnixMilli()
	var events []string
	for i := range 1000 {
		var ids []string
		for _, id := range rand.Perm(20) { // each event in an order of its own
			ids = append(ids, fmt.Sprintf(`"%d"`, id))
		}
		events = append(events, fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"rich","userToken":"rich-%d","timestamp":%d,"objectIDs":[%s]}`,
			i%100, now-int64(i), strings.Join(ids, ",")))
	}
	t.persist(ctx, "/1/events", pack(`{"events":[`+strings.Join(events, ",")+`]}`), to)
	for i := range 100 {
		if err := t.awaitEvent(ctx, fmt.Sprint("rich-", i)); err != nil {
			return err
		}
	}
	return nil
}

// largeEvents sends 80 requests at once that unpack to 1.97 MB each.
func largeEvents(ctx context.Context, t *target, to answers) error {
	now := time.Now().UnixMilli()
	var body strings.Builder
	body.WriteString(`{"events":[`)
	filters := strings.Repeat(`"color:`+strings.Repeat("x", 80)+`",`, 19) + `"color:Red"`
	for i := range 1000 {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `{"eventType":"view","eventName":"Seen","index":"i","userToken":"large","timestamp":%d,"filters":[%s]}`, now-int64(i), filters)
	}
	body.WriteString(`]}`)
	t.postAll(ctx, 80, "/1/events", pack(body.String()), to)
	if to[http.StatusOK] == 0 {
		return nil // all are refused
	}
	return t.awaitEvent(ctx, "large")
}

// record is an object of size bytes.
func record(id string, size int) string {
	return fmt.Sprintf(`{"objectID":%q,"text":%q}`, id, strings.Repeat("x", size))
}

// largeBatches sends 40 batches at once that unpack to 9.7 MB each.
func largeBatches(ctx context.Context, t *target, to answers) error {
	var actions []string
	for i := range 100 {
		actions = append(actions, `{"action":"addObject","body":`+record(fmt.Sprint(i), 97_000)+`}`)
	}
	t.postAll(ctx, 40, "/1/indexes/large/batch", pack(`{"requests":[`+strings.Join(actions, ",")+`]}`), to)
	return nil
}

// partialUpdates sends ten batches at once that each update 1,000 records of 90 KB,
// and 3,000 times one of them.
func partialUpdates(ctx context.Context, t *target, to answers) error {
	const objects = 1000
	for from := 0; from < objects; from += 100 {
		var actions []string
		for i := from; i < from+100; i++ {
			actions = append(actions, `{"action":"addObject","body":`+record(fmt.Sprint(i), 90_000)+`}`)
		}
		t.persist(ctx, "/1/indexes/partial/batch", pack(`{"requests":[`+strings.Join(actions, ",")+`]}`), to)
	}
	var actions []string
	for i := range objects {
		actions = append(actions, fmt.Sprintf(`{"action":"partialUpdateObject","body":{"objectID":"%d","n":%d}}`, i, i))
	}
	for i := range 3000 {
		actions = append(actions, fmt.Sprintf(`{"action":"partialUpdateObject","body":{"objectID":"0","n":%d}}`, i))
	}
	t.postAll(ctx, 10, "/1/indexes/partial/batch", pack(`{"requests":[`+strings.Join(actions, ",")+`]}`), to)
	return nil
}

// slowBodies opens 300 connections that claim a body of 1.9 MB and send 150 bytes.
func slowBodies(ctx context.Context, t *target, to answers) error {
	head := fmt.Sprintf("POST /1/events HTTP/1.1\r\nHost: %s\r\nX-Algolia-Application-Id: "+
		"%s\r\nX-Algolia-API-Key: %s\r\nContent-Length: 1900000\r\n\r\n%s",
		t.host, evilApp, evilKey, strings.Repeat(" ", 10))
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	dialer := net.Dialer{Timeout: 10 * time.Second}
	for range 300 {
		c, err := dialer.DialContext(ctx, "tcp", t.host)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		open = append(open, c)
		if _, err := c.Write([]byte(head)); err != nil {
			return fmt.Errorf("send the head of a request: %w", err)
		}
	}
	for _, c := range open {
		_ = c.SetReadDeadline(time.Now().Add(15 * time.Second))
		status := 0
		if line, err := readLine(c); err == nil {
			_, _ = fmt.Sscanf(line, "HTTP/1.1 %d", &status)
		}
		to[status]++
	}
	return ctx.Err()
}

// manyValues gives a user 160,000 values by eight requests of 1.8 MB, and then has the
// user read, explained, previewed and recomputed.
func manyValues(ctx context.Context, t *target, to answers) error {
	now := time.Now().UnixMilli()
	for request := range 8 {
		var events []string
		for i := range 1000 {
			var filters []string
			for k := range 20 {
				filters = append(filters, fmt.Sprintf(`"color:value %d of event %d in request %d, %s"`, k, i, request,
					strings.Repeat("v", 40)))
			}
			events = append(events, fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":"many","timestamp":%d,"filters":[%s]}`,
				now-int64(1000*request+i), strings.Join(filters, ",")))
		}
		t.persist(ctx, "/1/events", pack(`{"events":[`+strings.Join(events, ",")+`]}`), to)
	}
	for i := range 5 {
		t.persist(ctx, "/1/events", pack(fmt.Sprintf(
			`{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"many",`+
				`"timestamp":%d,"filters":["color:last %d"]}]}`, now+int64(i), i)), to)
	}
	if err := t.awaitTotal(ctx, "many", 160_000); err != nil {
		return err
	}
	for _, path := range []string{"/1/profiles/many?limit=10000", "/1/profiles/personalization/many", "/1/explain/many"} {
		for range 8 {
			t.getAll(ctx, 4, path, to)
		}
	}
	other := strategyOf(11 + rand.IntN(80)) // a change in each round
	t.postAll(ctx, 4, "/1/strategies/personalization/preview", pack(`{"userTokens":["many"],"strategy":`+other+`}`), to)
	t.persist(ctx, "/1/strategies/personalization", pack(other), to) // and its recompute
	t.getAll(ctx, 4, "/1/profiles/many?limit=10000", to)
	return t.awaitRecompute(ctx)
}
