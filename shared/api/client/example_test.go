package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// engine is a fake of an engine for the examples, with one answer for each
// route.
func engine(answers map[string]string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.Method+" "+r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"status":404,"message":"No profile: user token \"bob\" has no event within the retention"}`
		}
		_, _ = io.WriteString(w, answer)
	}))
}

func Example() {
	server := engine(map[string]string{
		"POST /1/events": `{"status":200,"message":"OK"}`,
		"GET /1/profiles/ann": `{"userToken":"ann","lastEventAt":"2026-11-21T19:33:10.394Z","asOf":"2026-11-21T19:33:12.000Z","strategyVersion":1,` +
			`"source":"stored","total":2,"affinities":[{"facet":"color","operator":":","value":"Red","score":12},` +
			`{"facet":"brand","operator":":","value":"Apple","score":10}]}`,
	})
	defer server.Close()

	c, err := client.New(client.Config{URL: server.URL, App: "shop", Key: "s3cret"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	err = c.Events().Send(ctx, api.Event{
		EventType: api.EventClick, EventName: "Product Clicked", Index: "products", UserToken: "ann",
		ObjectIDs: []string{"phone-1"}, Timestamp: time.Date(2026, 11, 21, 19, 33, 10, 394e6, time.UTC).UnixMilli(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	profile, err := c.Profiles().Get(ctx, "ann", api.ProfileQuery{Limit: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range profile.Affinities {
		fmt.Printf("%s:%s %g\n", a.Facet, a.Value, a.Score)
	}
	// Output:
	// color:Red 12
	// brand:Apple 10
}

func ExampleClient_Rank() {
	server := engine(map[string]string{
		"POST /1/rank": `{"id":"4f1c2a0d9b7e4c63a5d8f0e1b2c3d4e5","took":1,"strategyVersion":1,"crowdAsOf":null,"fallback":null,"items":[` +
			`{"objectID":"phone-1","score":0.85,"features":[{"name":"relevancy","value":0.5},{"name":"affinity","value":0.35,` +
			`"parts":[{"name":"brand:Apple","value":0.35}]}]},{"objectID":"phone-2","score":0.2,"features":[{"name":"affinity","value":0.2}]}]}`,
	})
	defer server.Close()
	c, err := client.New(client.Config{URL: server.URL, App: "shop", Key: "s3cret"})
	if err != nil {
		fmt.Println(err)
		return
	}
	found := []struct {
		id    string
		score float64 // of the search engine
	}{{"phone-2", 3.1}, {"phone-1", 4.7}}
	request := api.RankRequest{UserToken: "ann", Index: "products", Explain: true}
	for _, f := range found {
		request.Items = append(request.Items, api.RankItem{ID: f.id, Fields: []api.RankField{{Name: api.FieldRelevancy, Value: f.score}}})
	}
	answer, err := c.Rank(context.Background(), request)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, item := range answer.Items {
		fmt.Printf("%s %g\n", item.ObjectID, item.Score)
	}
	// Output:
	// phone-1 0.85
	// phone-2 0.2
}

func ExampleProfiles_Get_unknown() {
	server := engine(nil)
	defer server.Close()
	c, err := client.New(client.Config{URL: server.URL, App: "shop", Key: "s3cret"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = c.Profiles().Get(context.Background(), "bob", api.ProfileQuery{})
	var refused *api.Error
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		fmt.Println(refused.Message)
	}
	// Output: No profile: user token "bob" has no event within the retention
}

func ExampleStrategies_Preview() {
	server := engine(map[string]string{
		"POST /1/strategies/personalization/preview": `{"sampled":100,"known":80,"changed":12,"unchanged":68,"strategyVersion":1,` +
			`"rankCorrelation":{"mean":0.97,"min":0.4,"p10":0.9},"facets":[],"examples":[]}`,
	})
	defer server.Close()
	c, err := client.New(client.Config{URL: server.URL, App: "shop", Key: "s3cret"})
	if err != nil {
		fmt.Println(err)
		return
	}
	strategy, err := json.Marshal(api.Strategy{
		EventsScoring: []api.EventScore{{EventName: "Order Completed", EventType: api.EventConversion, Score: 30}},
		FacetsScoring: []api.FacetScore{{FacetName: "brand", Score: 100}},
		HalfLives:     strategy.InDays(30),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := c.Strategies().Preview(context.Background(), api.PreviewRequest{Strategy: strategy})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d of %d profiles would change\n", p.Changed, p.Known)
	// Output: 12 of 80 profiles would change
}

func ExampleEvents_ImportAll() {
	server := engine(map[string]string{
		"POST /1/events/import": `{"accepted":1,"received":0,"deleted":0,"outsideRetention":0,"refused":[{"line":2,"message":"EventName is required"}]}`,
	})
	defer server.Close()
	c, err := client.New(client.Config{URL: server.URL, App: "shop", Key: "s3cret", Gzip: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	history := strings.NewReader(`{"eventType":"view","eventName":"Product Viewed","userToken":"ann","timestamp":1795289590394,"objectIDs":["phone-1"]}
{"eventType":"view","userToken":"ann","timestamp":1795289590395,"objectIDs":["phone-1"]}
`)
	answer, err := c.Events().ImportAll(context.Background(), "products", history)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Accepted, "accepted")
	for _, line := range answer.Refused {
		fmt.Printf("line %d: %s\n", line.Line, line.Message)
	}
	// Output:
	// 1 accepted
	// line 2: EventName is required
}
