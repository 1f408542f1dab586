package load

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/googleapis/gax-go/v2"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// rankLimit is how many items a rank request asks for, as a page shows them.
const rankLimit = 20

// putObjects puts the candidates of rank requests and of the feed into the index:
// load-0, load-1 and so on, with the filters that events have, each dated a minute before
// the one before it.
func (l *loader) putObjects(ctx context.Context) error {
	var actions []api.BatchAction
	now := time.Now().Add(l.ahead)
	for n := range l.o.Candidates {
		id := fmt.Sprintf("load-%d", n)
		record, err := l.mix.record(id, n, now.Add(-time.Duration(n)*time.Minute))
		if err != nil {
			return err
		}
		actions, l.candidates = append(actions, api.BatchAction{Action: api.ActionAddObject, Body: record}),
			append(l.candidates, id)
	}
	for some := range slices.Chunk(actions, api.MaxActions) {
		if _, err := l.c.Catalog().Batch(ctx, l.o.Index, some...); err != nil {
			return fmt.Errorf("put the objects to rank into index %s: %w", l.o.Index, err)
		}
	}
	return nil
}

const (
	// maxPreload is the largest number of events of a user before the measurement.
	maxPreload = 1000
	// preloadRate is how many of them are sent per second: less than the lowest default of
	// an app's limit.
	preloadRate = 800
)

// introduce sends the first events of all users, and waits until they count, so that
// reads and orders are those of users with events. They are no part of the measurement,
// so c may repeat requests.
func (l *loader) introduce(ctx context.Context, c *client.Client) error {
	var events []api.Event
	now := time.Now().Add(l.ahead)
	for n := range l.o.Users {
		for k := range l.o.Preload {
			events = append(events, l.mix.event(l.user(n), now.Add(-time.Duration(k)*time.Minute)))
		}
		if n < l.persons() {
			signedIn := l.mix.event(anonymous(l.user(n)), now)
			signedIn.AuthenticatedUserToken = l.user(n)
			events = append(events, signedIn)
		}
	}
	requests := slices.Collect(slices.Chunk(events, preloadRate/2))
	for n, some := range requests {
		if n > 0 {
			if err := gax.Sleep(ctx, time.Second/2); err != nil {
				return err
			}
		}
		if err := c.Events().Send(ctx, some...); err != nil {
			return fmt.Errorf("send the first events of the users: %w", err)
		}
	}
	for _, some := range requests {
		last := some[len(some)-1].UserToken
		err := cli.Poll(ctx, sampleTimeout, func() (bool, error) {
			_, err := c.Profiles().Get(ctx, last, api.ProfileQuery{})
			if isUnknownUser(err) {
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("wait for the first events of the users: %w", err)
		}
	}
	if l.persons() > 0 {
		return l.findLink(ctx, c)
	}
	return nil
}

// findLink waits until a person has its anonymous token.
func (l *loader) findLink(ctx context.Context, c *client.Client) error {
	err := cli.Poll(ctx, sampleTimeout, func() (bool, error) {
		person, err := c.Profiles().Identity(ctx, l.user(0))
		return err == nil && len(person.Links) > 0, err
	})
	if err != nil {
		return fmt.Errorf("wait for a link of %s: with --persons the app must link tokens, see `affinity app identity`: %w",
			l.user(0), err)
	}
	return nil
}

// record is an object with the filters of event target n. A facet with dots is nested.
func (m *mix) record(id string, n int, at time.Time) (json.RawMessage, error) {
	record := map[string]any{"objectID": id, feedDate: at.UTC().Format(time.RFC3339)}
	for _, filter := range m.filters[n%len(m.filters)] {
		facet, value, _ := strings.Cut(strings.ReplaceAll(filter, "%25", "%"), ":")
		at, path := record, strings.Split(facet, ".")
		for _, name := range path[:len(path)-1] {
			inner, ok := at[name].(map[string]any)
			if !ok {
				inner = map[string]any{}
				at[name] = inner
			}
			at = inner
		}
		at[path[len(path)-1]] = value
	}
	return json.Marshal(record)
}

// rank orders the objects for a random user, who may be unknown.
func (l *loader) rank(ctx context.Context) error {
	_, err := l.c.Rank(ctx, api.RankRequest{UserToken: l.user(rand.IntN(l.o.Users)), Index: l.o.Index,
		ObjectIDs: l.candidates, Limit: rankLimit})
	return err
}
