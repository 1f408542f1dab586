package archive_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/archive"
	"github.com/affinityengine/affinity/shared/local/must"
)

const received = 1_700_000_000_000

func encoded(t *testing.T, m bus.Message) string {
	t.Helper()
	data, err := m.Encode()
	must.Succeed(t, err)
	return string(data) + "\n"
}

// accepted is an archived message of two events of a user.
func accepted(t *testing.T, user string) string {
	t.Helper()
	one := fmt.Sprintf("{\"eventType\":\"view\",\n\"eventName\":\"Seen\",\"index\":\"i\",\"userToken\":%q,\"objectIDs\":[\"1\"]}", user)
	return encoded(t, bus.Message{App: "demo", ReceivedAt: received, Request: 7, Resolved: true, Body: []byte(`{"events":[` + one + `,` + one + `]}`)})
}

// reenriched is an archived re-enrichment of an event of a user.
func reenriched(t *testing.T, user string) string {
	t.Helper()
	e, err := event.Decode(fmt.Appendf(nil, `{"eventType":"view","eventName":"Seen","userToken":%q,"objectIDs":["1"]}`, user), event.Rules{Now: time.UnixMilli(received), Index: "i"})
	must.Succeed(t, err)
	m, err := bus.NewReenriched("demo", time.UnixMilli(received+5), []bus.Logged{{User: user, Time: received, ID: e.ID(), ReceivedAt: received, Event: e}}, bus.Resolution{Objects: bus.Objects{"i": {"1": {{"color", "Red"}}}}})
	must.Succeed(t, err)
	return encoded(t, m)
}

// signedIn is an archived message that holds no events.
func signedIn(t *testing.T) string {
	t.Helper()
	m, err := bus.NewSignIns("demo", time.UnixMilli(received), bus.StrongEvidence, "5b1f0a9c77de", []bus.SignIn{{User: "a", Known: "bob", Time: received}})
	must.Succeed(t, err)
	return encoded(t, m)
}

func TestSignInsAreNoEvents(t *testing.T) {
	users, faults := read(t, accepted(t, "ann")+signedIn(t)+reenriched(t, "joe"))
	if !slices.Equal(users, []string{"ann", "ann", "joe"}) || len(faults) > 0 {
		t.Errorf("users %q, faults in lines %v", users, faults)
	}
}

// read returns the users of all events of a file, and the lines of its faults.
func read(t *testing.T, text string) (users []string, faults []int) {
	t.Helper()
	r := archive.NewReader(bufio.NewReaderSize(strings.NewReader(text), 16))
	for {
		m, _, err := r.Next()
		var fault *archive.Fault
		switch {
		case errors.Is(err, io.EOF):
			return users, faults
		case errors.As(err, &fault):
			faults = append(faults, fault.Line)
			continue
		case err != nil:
			t.Fatal(err)
		}
		lines, err := archive.Lines(m)
		must.Succeed(t, err)
		for _, l := range lines {
			users = append(users, l.Place.User)
		}
	}
}

// Wherever a file ends within a message, as a process that dies leaves it, the messages
// before it are read, and also those of a file that goes on after the torn line.
func TestTornMessageIsNamed(t *testing.T) {
	before, after := accepted(t, "ann"), reenriched(t, "joe")
	for name, torn := range map[string]string{"accepted": accepted(t, "bob"), "reenriched": reenriched(t, "bob"), "sign-ins": signedIn(t)} {
		for cut := 1; cut < len(torn)-2; cut++ {
			if users, faults := read(t, before+torn[:cut]); !slices.Equal(users, []string{"ann", "ann"}) || len(faults) != 1 || faults[0] < 3 {
				t.Fatalf("%s, cut at %d: users %q, faults in lines %v", name, cut, users, faults)
			}
			users, faults := read(t, before+torn[:cut]+"\n"+after)
			if !slices.Equal(users, []string{"ann", "ann", "joe"}) || len(faults) == 0 {
				t.Fatalf("%s, cut at %d before another message: users %q, faults in lines %v", name, cut, users, faults)
			}
		}
	}
}

// A line of a client that looks like the head of a message is a part of its own message.
func TestBodyIsNoMessage(t *testing.T) {
	body := `{"version":1,"lines":1,"app":"other","receivedAt":1,"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"ann","objectIDs":["1"]}]}`
	forged := encoded(t, bus.Message{App: "demo", ReceivedAt: received, Resolved: true, Body: []byte(body)})
	if users, faults := read(t, forged+accepted(t, "bob")); !slices.Equal(users, []string{"ann", "bob", "bob"}) || len(faults) != 0 {
		t.Errorf("users %q, faults in lines %v", users, faults)
	}
}

func TestBetter(t *testing.T) {
	for _, c := range []struct {
		a, b archive.Rank
		want bool
	}{
		{archive.Rank{UnknownObjects: 0, At: 1}, archive.Rank{UnknownObjects: 1, At: 9}, true},
		{archive.Rank{UnknownObjects: 1, At: 9}, archive.Rank{UnknownObjects: 0, At: 1}, false},
		{archive.Rank{UnknownObjects: 1, At: 9}, archive.Rank{UnknownObjects: 1, At: 8}, true},
		{archive.Rank{UnknownObjects: 1, At: 9}, archive.Rank{UnknownObjects: 1, At: 9}, false},
	} {
		if got := c.a.Better(c.b); got != c.want {
			t.Errorf("%+v better than %+v: %v", c.a, c.b, got)
		}
	}
}
