package stack_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/telemetry"
)

// loggedLines are the lines that functions log.
type loggedLines struct {
	sync.Mutex
	text bytes.Buffer
}

func (l *loggedLines) Write(b []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.text.Write(b)
}

// take returns the lines since the last call.
func (l *loggedLines) take() []string {
	l.Lock()
	defer l.Unlock()
	lines := strings.FieldsFunc(l.text.String(), func(r rune) bool { return r == '\n' })
	l.text.Reset()
	return lines
}

// All functions together log one line for each message, one for the first of sixteen reads
// of stored profiles, and none for any other request that succeeds. Each line has only the
// fields that metrics and people read.
func TestHealthyTrafficLogsOneLineAMessage(t *testing.T) {
	var out loggedLines
	s := start(t, stack.Options{Log: telemetry.NewLogger(&out, "shop")})
	if status, answer := call(t, s, "POST", "/1/strategies/personalization", seenStrategy); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	idle(t, s)
	out.take()
	const requests = 3
	for i := range requests {
		const one = `{"eventType":"view","eventName":"Seen","index":"i","userToken":"%s","filters":["color:Red"]}`
		body := fmt.Sprintf(`{"events":[`+one+`,`+one+`]}`, "ann", fmt.Sprint("user-", i))
		if status, answer := call(t, s, "POST", "/1/events", body); status != 200 {
			t.Fatalf("%d %s", status, answer)
		}
		idle(t, s)
	}
	for _, read := range [][3]string{
		{"GET", "/1/profiles/ann"}, {"GET", "/1/profiles/nobody"}, {"POST", "/1/profiles/batch", `{"userTokens":["ann","user-0"]}`},
		{"GET", "/1/profiles/personalization/ann"}, {"GET", "/1/explain/ann"}, {"POST", "/1/rank", `{"userToken":"ann","index":"i","objectIDs":["a"]}`},
	} {
		if status, answer := call(t, s, read[0], read[1], read[2]); status != 200 && status != 404 {
			t.Errorf("%s: %d %s", read[1], status, answer)
		}
	}
	fieldsOf := map[any][]string{
		"events applied":      {"app", "events", "lagMs", "message", "severity", "time"},
		"stored profile read": {"message", "ms", "severity", "time"},
	}
	counts := map[any]int{}
	for _, line := range out.take() {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		counts[fields["message"]]++
		if diff := cmp.Diff(fieldsOf[fields["message"]], slices.Sorted(maps.Keys(fields))); diff != "" {
			t.Errorf("%s has other fields (-want +got):\n%s", line, diff)
		}
	}
	if diff := cmp.Diff(map[any]int{"events applied": requests, "stored profile read": 1}, counts); diff != "" {
		t.Errorf("lines by message (-want +got):\n%s", diff)
	}
}
