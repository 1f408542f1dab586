package emulator

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestProbeOrder(t *testing.T) {
	ctx, server, client := testPubSub(t, sweepEvery, time.Now)
	in := make(chan struct{}, 1)
	leave := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { in <- struct{}{}; <-leave }))
	defer s.Close()
	b, err := StartBridge(ctx, client, BridgeConfig{Subscription: testSubscription, Endpoint: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	publish(ctx, t, client, "x")
	<-in
	server2 := time.Now()
	server.server.Stop()
	close(leave)
	b.Close()
	t.Log("close took", time.Since(server2))
}
