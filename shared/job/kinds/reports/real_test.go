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
	Users, Exposed, Clicks, Conversions int64
	Cents                               map[string]int64 // by currency
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

			// A third of the users have met an arm on a day of their own, a few of them not that of their hash.
			met, days := map[string]string{}, map[string]lift.Day{}
			for _, e := range events {
				h := hashed("met " + e.User)
				if met[e.User] == "" && h%3 == 0 {
					met[e.User], days[e.User] = []string{"old", "new"}[h/3%2], from+lift.Day(h/6%39)
				}
			}
			for user, arm := range met {
				h.expose(h.experiment, exposure{user, arm, days[user].Time().Add(time.Duration(hashed(user)%86_400) * time.Second)})
			}
			arms, exposed, users, seen := map[string]*armSums{}, map[string]*armSums{}, map[string]bool{}, map[string]bool{}
			for _, a := range h.experiment.Arms {
				arms[a.Name], exposed[a.Name] = &armSums{Cents: map[string]int64{}}, &armSums{Cents: map[string]int64{}}
			}
			for _, arm := range met {
				exposed[arm].Users++
				exposed[arm].Exposed++
			}
			for _, e := range events {
				name, on := met[e.User], lift.DayOf(time.UnixMilli(e.Time))
				if i, in := h.experiment.Arm(e.User); in && name == "" {
					name = h.experiment.Arms[i].Name
				}
				key := fmt.Sprint(e.User, " ", e.Time, " ", e.ID)
				if on < from || name == "" || seen[key] {
					continue
				}
				seen[key] = true
				arm := arms[name]
				if !users[e.User] {
					users[e.User] = true
					arm.Users++
					if met[e.User] != "" {
						arm.Exposed++
					}
				}
				arm.add(e, currencies[hashed(e.User)/oneOf%2])
				if met[e.User] != "" && on >= days[e.User] {
					exposed[name].add(e, currencies[hashed(e.User)/oneOf%2])
				}
			}
			_, body := h.report(reports.Request{Experiment: "checkout"})
			for _, m := range []lift.Metric{lift.Clicks, lift.Conversions, lift.Revenue} {
				for want, got := range map[*map[string]*armSums]lift.Report{&arms: body.Reports[m], &exposed: body.Exposed[m]} {
					if diff := cmp.Diff(*want, sumsOf(got)); diff != "" {
						t.Errorf("%s, %s (-want +got):\n%s", m, got.Population, diff)
					}
				}
			}
			if n := body.Exposed[lift.Clicks].People; n < 100 {
				t.Errorf("%d people have met an arm: too few to show anything", n)
			}
			if n := body.Reports[lift.Clicks].People; n < 200 {
				t.Errorf("%d people: too few to show anything", n)
			}
		})
	}
}

var currencies = []string{"EUR", "GBP"}

// add adds an event of a person of the arm. Its objects cost what their hash says.
func (s *armSums) add(e store.LogEvent, currency string) {
	switch e.Type {
	case event.Click:
		s.Clicks++
	case event.Conversion:
		s.Conversions++
		for _, id := range e.ObjectIDs {
			s.Cents[currency] += int64(hashed(id) % 5_000 * (1 + hashed(id)%3))
		}
	}
}

// sumsOf returns what a report says of each arm.
func sumsOf(r lift.Report) map[string]*armSums {
	all := map[string]*armSums{}
	for _, a := range r.Arms {
		cents := map[string]int64{}
		for currency, amount := range a.Revenue {
			cents[currency] = int64(math.Round(amount * 100))
		}
		all[a.Name] = &armSums{a.Users, a.Exposed, a.Clicks, a.Conversions, cents}
	}
	return all
}

func hashed(s string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return h.Sum32()
}
