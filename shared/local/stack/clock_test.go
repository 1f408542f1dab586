package stack_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/intake/refused"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// lines collects log lines.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A process whose clock is a year ahead receives events, and deletes and opts out users. With
// the next one, whose clock is right, everything that follows counts, and nothing that was
// deleted comes back.
func TestClockThatWasAhead(t *testing.T) {
	data := t.TempDir()
	var log lines
	run := func(now time.Time, do func(ask func(method, path, body string) string)) {
		t.Helper()
		s := start(t, stack.Options{Data: data, Now: now, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		do(func(method, path, body string) string {
			t.Helper()
			code, answer := call(t, s, method, path, body)
			if code != http.StatusOK && code != http.StatusNotFound {
				t.Fatalf("%s %s: %d %s", method, path, code, answer)
			}
			idle(t, s)
			return answer
		})
		must.Succeed(t, s.Backends.Refused.Flush(t.Context()))
		must.Succeed(t, s.Close())
	}
	seen := func(user, value string) string {
		return fmt.Sprintf(`{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":%q,"filters":["color:%s"]}]}`, user, value)
	}
	users := []string{"future", "deleted", "back"}
	right := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	run(right, func(ask func(method, path, body string) string) {
		ask("POST", "/1/strategies/personalization", seenStrategy)
		for _, user := range users {
			ask("POST", "/1/events", seen(user, "Before"))
		}
	})
	run(right.AddDate(1, 0, 4), func(ask func(method, path, body string) string) {
		for _, user := range users {
			ask("POST", "/1/events", seen(user, "Ahead"))
		}
		ask("DELETE", "/1/profiles/deleted", "")
		ask("PUT", "/1/optouts/back", "")
		ask("DELETE", "/1/optouts/back", "")
	})
	if text := log.String(); text != "" {
		t.Errorf("the log says before a clock goes back: %s", text)
	}
	run(right.Add(time.Hour), func(ask func(method, path, body string) string) {
		if text := log.String(); !strings.Contains(text, "the data folder was used by a clock ahead of this one") ||
			!strings.Contains(text, "until=2027-12-01T08:0") || !strings.Contains(text, "deletionsEnded=2") {
			t.Errorf("the start says %s; want the time of the other clock, and that two deletions ended", text)
		}
		if answer := ask("GET", "/1/explain/future", ""); !strings.Contains(answer, `"outsideWindow":0,"ahead":1`) || !strings.Contains(answer, "1 of 2 events is ahead of now") {
			t.Errorf("explained as %s, want one event ahead", answer)
		}
		for _, user := range users {
			ask("POST", "/1/events", seen(user, "After"))
			answer := ask("GET", "/1/profiles/"+user, "")
			if got := strings.Contains(answer, "Before"); got != (user == "future") || strings.Contains(answer, "Ahead") || !strings.Contains(answer, "After") || !strings.Contains(answer, `"asOf":"2026-11-27T`) {
				t.Errorf("the profile of %s is %s; want what came after, and what came before only of the user who was not deleted", user, answer)
			}
		}
		if answer := ask("GET", "/1/explain/deleted", ""); !strings.Contains(answer, `"accepted":1`) {
			t.Errorf("explained as %s, want the event after the deletion alone", answer)
		}
		if answer := ask("GET", "/1/events/refused", ""); strings.Contains(answer, refused.Ahead) {
			t.Errorf("refused are %s, want no event: all count", answer)
		}
	})
}
