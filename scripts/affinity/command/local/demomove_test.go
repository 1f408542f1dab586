package local

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// A visitor says what is wrong.
func TestVisitorsNotice(t *testing.T) {
	s, err := stack.Start(t.Context(), stack.Options{Apps: []stack.App{{ID: "demo", Key: demoKey}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := client.New(client.Config{URL: s.URL, App: "demo", Key: demoKey, Retry: client.NoRetry})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Strategies().SetJSON(t.Context(), []byte(moveStrategy), client.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	v := newVisitors(c, 40)
	v.timed.Store(newTimes())
	ctx, stop := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	sending.Go(func() { v.send(ctx, 500) })
	for v.total.Load() < 40 {
		time.Sleep(time.Millisecond) // until each has an event
	}
	stop()
	sending.Wait()
	if err := v.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	v.shown[0] = 1e9
	ctx, stop = context.WithCancel(t.Context())
	sending.Go(func() { v.read(ctx, 500) })
	for v.timed.Load().count() < 40 {
		time.Sleep(time.Millisecond) // until one is read
	}
	stop()
	sending.Wait()
	if err := v.check(t.Context()); err == nil || !strings.Contains(err.Error(), "the profile of visitor-0 shows") {
		t.Errorf("a profile that lost events: %v", err)
	}
}
