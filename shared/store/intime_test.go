package store_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/deadline"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

// What a request left behind sends nothing once its time is over, even if no timer has
// ended its context: the machine may have been suspended.
func TestWorkThatIsOverSendsNothing(t *testing.T) {
	tr := &traffic{}
	s := storetest.New(t, storetest.Connected{}, grpc.WithStatsHandler(tr))
	begun, cancel := deadline.Begin(t.Context(), time.Millisecond)
	defer cancel()
	<-begun.Done()
	over := context.WithoutCancel(begun)
	for name, call := range map[string]func() error{
		"ticket": func() error { _, err := s.Users.TakeTicket(over, app, "u"); return err },
		"read":   func() error { _, err := s.Users.ReadUser(over, app, "u"); return err },
		"scan": func() error {
			return s.Users.ScanUsers(over, app, "", "", 0, store.UserState, func(string, store.User) error { return nil })
		},
		"write": func() error {
			return s.Users.WriteProfiles(over, app, []store.ProfileWrite{{User: "u", Row: store.User{Ticket: 1}, Value: []byte("p")}})
		},
	} {
		requests, _, _ := tr.of(t, func() error {
			if err := call(); status.Code(err) != codes.Canceled {
				t.Errorf("%s: %v, want Canceled", name, err)
			}
			return nil
		})
		if requests > 0 {
			t.Errorf("%s: %d requests were sent", name, requests)
		}
	}
	if _, err := s.Users.TakeTicket(t.Context(), app, "u"); err != nil {
		t.Errorf("work that has not begun: %v", err)
	}
}
