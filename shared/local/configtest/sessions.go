package configtest

import (
	"context"
	"testing"
	"time"
)

// sessions are the methods of a store about sessions of the console.
type sessions interface {
	EndSession(ctx context.Context, app, id string, now, end time.Time) error
	SessionEnded(ctx context.Context, app, id string) (bool, error)
}

// A session has ended once it was ended, and is forgotten after its end.
func testSessions(t *testing.T, s store) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
	create(t, s, "shop")
	create(t, s, "other")
	ended := func(app, id string, want bool) {
		t.Helper()
		is, err := s.SessionEnded(t.Context(), app, id)
		read(t, "session "+id, is, err, want)
	}
	end := func(id string, at time.Time, end time.Duration) {
		t.Helper()
		if err := s.EndSession(t.Context(), "shop", id, at, at.Add(end)); err != nil {
			t.Fatal(err)
		}
	}
	ended("shop", "a", false)
	end("a", now, time.Hour)
	end("a", now, time.Hour) // twice
	end("b", now, 3*time.Hour)
	ended("shop", "a", true)
	ended("other", "a", false)
	end("c", now.Add(2*time.Hour), time.Hour)
	ended("shop", "a", false)
	ended("shop", "b", true)
	ended("shop", "c", true)
}
