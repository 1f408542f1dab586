package event_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/event"
)

func TestCarriedConsent(t *testing.T) {
	many := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"c%d":false`, i))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	for _, c := range []struct {
		consent string
		denied  []string
		wrong   string
	}{
		{consent: `null`},
		{consent: `{}`},
		{consent: `{"ad_storage":"denied","analytics_storage":"granted","Advertising":false,"mail":true,"x":null,"":false}`, denied: []string{"ad_storage", "Advertising", ""}},
		{consent: `{"ads":true,"ads":false}`, denied: []string{"ads"}},
		{consent: `{"ads":false,"ads":true}`, denied: []string{"ads"}},
		{consent: `{"\u0061ds":false}`, denied: []string{"ads"}},
		{consent: `{"ads":"no"}`, wrong: "expected boolean, granted or denied, got string"},
		{consent: `{"ads":0}`, wrong: "expected boolean, granted or denied, got number"},
		{consent: `{"ads":{}}`, wrong: "expected boolean, granted or denied, got object"},
		{consent: `["ads"]`, wrong: "expected object, got array"},
		{consent: `"denied"`, wrong: "expected object, got string"},
		{consent: many(65), wrong: "Consent must deny at most 64 names"},
	} {
		e, err := event.Decode([]byte(`{"eventType":"view","eventName":"Seen","userToken":"ann","index":"i","filters":["a:b"],"consent":`+c.consent+`}`),
			event.Rules{Now: time.Now()})
		if c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) || c.wrong == "" && (err != nil || !slices.Equal(e.Denied, c.denied)) {
			t.Errorf("%.80s: %v, %v", c.consent, e.Denied, err)
		}
	}
	e, err := event.Decode([]byte(`{"eventType":"view","eventName":"Seen","userToken":"ann","index":"i","filters":["a:b"],"consent":`+many(64)+`}`), event.Rules{Now: time.Now()})
	if err != nil || len(e.Denied) != 64 {
		t.Errorf("64 names: %d, %v", len(e.Denied), err)
	}
}
