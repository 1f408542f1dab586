package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

const eventTime = int64(1_700_000_000_000)

// receiptOf is the receipt of the only row.
func receiptOf(t *testing.T, l store.Log) (receipt int64) {
	t.Helper()
	err := l.ReadObjects(context.Background(), []store.UserRange{{User: "u", To: history.End}}, func(_ string, row store.LogRow) error {
		receipt = row.Receipt()
		if o, named := row.Objects(); !named || o.Type != "click" {
			t.Errorf("objects %+v, %v", o, named)
		}
		return nil
	})
	must.Succeed(t, err)
	return receipt
}

// Writers come in any order: the greatest receipt of a row stays, and so do the
// filters of the last write.
func TestReceiptsOnlyRise(t *testing.T) {
	ctx := context.Background()
	s := storetest.New(t)
	for _, n := range schema.Names {
		for _, encoding := range []schema.Encoding{schema.JSON, schema.Compact} {
			l := s.Events.Log(app, schema.Layout{Write: schema.Names, Read: n, Encoding: encoding})
			e := click("u", eventTime, affinity.Count{Facet: "color", Value: "Red", N: 1})
			write := func(receipt int64, do func(context.Context, store.LogEvent) error) {
				t.Helper()
				e.Receipt = receipt
				must.Succeed(t, do(ctx, e))
			}
			appended := func(ctx context.Context, e store.LogEvent) error { return l.Append(ctx, []store.LogEvent{e}) }
			copied := func(ctx context.Context, e store.LogEvent) error { return l.Copy(ctx, n, []store.LogEvent{e}) }
			want := func(want int64) {
				t.Helper()
				if got := receiptOf(t, l); got != want {
					t.Errorf("%s, %s: receipt %d after the event, want %d", n, encoding, got-eventTime, want-eventTime)
				}
				p := score(t, fixture{Store: s, layout: schema.Layout{Write: schema.Names, Read: n, Encoding: encoding}}, clicks, "u", eventTime+5000)
				if len(p.Affinities) != 1 || p.Affinities[0].Value != e.Counts[0].Value {
					t.Errorf("%s, %s: %+v", n, encoding, p.Affinities)
				}
			}
			write(eventTime+70, appended)
			want(eventTime + 70)
			write(eventTime+30, copied)
			e.Counts[0].Value = "Blue"
			write(eventTime-20, appended)
			want(eventTime + 70)
			write(eventTime+90, copied) // the copy's receipt counts, its filters do not
			want(eventTime + 90)
			write(eventTime+1e9, appended) // further away than any deletion looks
			want(eventTime + 300_000)
			for _, other := range schema.Names {
				must.Succeed(t, l.DropReceived(ctx, other, []store.LogEvent{e}, eventTime+299_998))
			}
			want(eventTime + 300_000)
			must.Succeed(t, l.Delete(ctx, []store.LogEvent{e}))
		}
	}
}

// A purge takes what the tombstone covers by time or by receipt. The receipt of an event
// that is written without one is that of its original, or its time.
func TestPurgeGoesByReceipts(t *testing.T) {
	ctx := context.Background()
	s := storetest.New(t)
	l := s.Events.Log(app, schema.Layout{Write: schema.Names, Read: schema.Wide, Encoding: schema.Compact})
	var events []store.LogEvent
	for i, receipt := range []int64{eventTime, eventTime + 10, eventTime + 11, 0, 0, 0} {
		e := click("u", eventTime+int64(i))
		if e.Receipt = receipt; i == 3 {
			e.Original = fmt.Appendf(nil, `{"receivedAt":%d,"index":"i","event":{}}`, eventTime+10)
		} else if i == 4 {
			e.Original = fmt.Appendf(nil, `{"receivedAt":%d,"index":"i","event":{}}`, eventTime+11)
		}
		events = append(events, e)
	}
	events = append(events, click("u", eventTime+11))
	must.Succeed(t, l.Append(ctx, events))
	n, err := s.Events.PurgeLog(ctx, app, "u", affinity.Tombstone{DeletedUntil: eventTime, ReceivedUntil: eventTime + 10})
	if err != nil || n != 4 {
		t.Errorf("purged %d, %v; want 4: by time, by receipt, by that of the original, by the time in its place", n, err)
	}
	for _, schemaName := range schema.Names {
		if left := entries(t, l, schemaName); len(left) != 3 {
			t.Errorf("%s: left %q, want the three received later", schemaName, left)
		}
	}
}

// Both numbers only rise, also if many raise them at the same time.
func TestTombstonesRiseTogether(t *testing.T) {
	ctx := context.Background()
	s := storetest.New(t)
	done := make(chan error)
	for i := range int64(20) {
		go func() {
			done <- s.Users.AdvanceTombstone(ctx, app, "u", affinity.Tombstone{DeletedUntil: 100 + i, ReceivedUntil: 300 - i})
		}()
	}
	for range 20 {
		must.Succeed(t, <-done)
	}
	row, err := s.Users.TakeTicket(ctx, app, "u")
	if want := (affinity.Tombstone{DeletedUntil: 119, ReceivedUntil: 300}); err != nil || row.Tombstone() != want {
		t.Errorf("%+v, %v; want %+v", row.Tombstone(), err, want)
	}
}
