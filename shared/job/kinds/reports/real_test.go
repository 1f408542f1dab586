package reports_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job/kinds/reports"
	"github.com/affinityengine/affinity/shared/judge/lift"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/realdata"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// armSums is what the people of an arm did.
type armSums struct {
	Users, Clicks, Conversions int64
	Cents                      map[string]int64 // by currency
}

// Of the logs of real shops a report says what a loop over their lines does. Conversions get prices, which the logs lack.
func TestRealReports(t *testing.T) {
	for _, set := range []string{"clickstream", "onlineretail"} {
		t.Run(set, func(t *testing.T) {
			const oneOf = 8 // users, to keep the test short
			h := newHarness(t, 0)
			var events []store.LogEvent
			var newest time.Time
			for line := range realdata.Lines(t, set, realdata.EventsFile) {
				var fields map[string]any
				must.Succeed(t, json.Unmarshal(line, &fields))
				if hashed(fields["userToken"].(string))%oneOf > 0 {
					continue
				}
				if ids, ok := fields["objectIDs"].([]any); ok && fields["eventType"] == "conversion" {
					var prices []map[string]any
					for _, id := range ids {
						prices = append(prices, map[string]any{"price": float64(hashed(id.(string))%5_000) / 100, "quantity": 1 + hashed(id.(string))%3})
					}
					fields["objectData"], fields["currency"] = prices, []string{"eur", "GBP"}[hashed(fields["userToken"].(string))/oneOf%2]
				}
				text, err := json.Marshal(fields)
				must.Succeed(t, err)
				at := time.UnixMilli(int64(fields["timestamp"].(float64)))
				e, err := event.Decode(text, event.Rules{Now: at, Index: realdata.Index})
				must.Succeed(t, err)
				original := schema.Original{ReceivedAt: at.UnixMilli(), Index: realdata.Index, Event: text}
				events = append(events, store.LogEvent{User: e.UserToken, Time: e.Time, ID: e.ID(), Type: e.Type, Name: e.Name, Index: e.Index,
					ObjectIDs: e.ObjectIDs, Original: original.Append(nil)})
				if at.After(newest) {
					newest = at
				}
			}
			h.Now = newest.UTC().Truncate(day).Add(day + time.Hour)
			_, err := h.engine.Import(t.Context(), h.app(), events)
			must.Succeed(t, err)
			h.experiment = h.half(40)
			from := lift.DayOf(h.experiment.StartAt)

			arms, users, seen := map[string]*armSums{}, map[string]bool{}, map[string]bool{}
			for _, a := range h.experiment.Arms {
				arms[a.Name] = &armSums{Cents: map[string]int64{}}
			}
			for _, e := range events {
				i, in := h.experiment.Arm(e.User)
				key := fmt.Sprint(e.User, " ", e.Time, " ", e.ID)
				if lift.DayOf(time.UnixMilli(e.Time)) < from || !in || seen[key] {
					continue
				}
				arm := arms[h.experiment.Arms[i].Name]
				seen[key] = true
				if !users[e.User] {
					users[e.User] = true
					arm.Users++
				}
				switch e.Type {
				case event.Click:
					arm.Clicks++
				case event.Conversion:
					arm.Conversions++
					for _, id := range e.ObjectIDs {
						arm.Cents[map[uint32]string{0: "EUR", 1: "GBP"}[hashed(e.User)/oneOf%2]] += int64(hashed(id) % 5_000 * (1 + hashed(id)%3))
					}
				}
			}
			_, body := h.report(reports.Request{Experiment: "checkout"})
			for _, m := range []lift.Metric{lift.Clicks, lift.Conversions, lift.Revenue} {
				got := map[string]*armSums{}
				for _, a := range body.Reports[m].Arms {
					cents := map[string]int64{}
					for currency, amount := range a.Revenue {
						cents[currency] = int64(math.Round(amount * 100))
					}
					got[a.Name] = &armSums{a.Users, a.Clicks, a.Conversions, cents}
				}
				if diff := cmp.Diff(arms, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", m, diff)
				}
			}
			if n := body.Reports[lift.Clicks].People; n < 200 {
				t.Errorf("%d people: too few to show anything", n)
			}
		})
	}
}

func hashed(s string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return h.Sum32()
}
