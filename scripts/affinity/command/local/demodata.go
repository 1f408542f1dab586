package local

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/importer"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/scripts/affinity/shop"
	"github.com/affinityengine/affinity/shared/api"
)

// history imports the catalog and a month of events, as the import command does.
func (d *demo) history(ctx context.Context) error {
	objects, events := d.shop.Objects(), d.shop.History(d.now())
	d.print("the shop sells %d products to %d people of %d kinds (seed %d)", len(objects),
		shop.UsersPerPersona*len(d.shop.Personas()),
		len(d.shop.Personas()), d.seed)
	im := importer.New(d.c, d.t.Retry, d.t.Err)
	begun := time.Now()
	catalog, err := sourceOf("catalog", objects)
	if err != nil {
		return err
	}
	if _, err = im.Objects(ctx, catalog, shop.Index); err != nil {
		return err
	}
	history, err := sourceOf("history", events)
	if err != nil {
		return err
	}
	counts, err := im.Events(ctx, history, shop.Index)
	if err != nil {
		return err
	}
	if err := im.BadLines(); err != nil {
		return fmt.Errorf("the engine refused some of the demo's own data: %w", err)
	}
	took := time.Since(begun)
	d.print("%d days of history: %d events imported in %.1f s (%.0f events/s)", shop.HistoryDays, counts.Accepted,
		took.Seconds(),
		cli.PerSecond(counts.Accepted, took))
	return nil
}

// sourceOf is a source with a line per item.
func sourceOf[T any](name string, items []T) (*importer.Source, error) {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, item := range items {
		if err := encoder.Encode(item); err != nil {
			return nil, fmt.Errorf("encode the demo's %s: %w", name, err)
		}
	}
	return importer.NewSource(name, &lines, int64(lines.Len())), nil
}

// live sends events one by one, as a shop does, and returns the time of each
// user's newest.
func (d *demo) live(ctx context.Context) (map[string]time.Time, error) {
	newest := map[string]time.Time{}
	events := d.shop.Live(d.now(), demoLive)
	for _, e := range events {
		event := api.Event{EventType: e.EventType, EventSubtype: e.EventSubtype, EventName: e.EventName, Index: e.Index,
			UserToken: e.UserToken, Timestamp: e.Timestamp, ObjectIDs: e.ObjectIDs}
		if err := d.c.Events().Send(ctx, event); err != nil {
			return nil, fmt.Errorf("send a live event: %w", err)
		}
		newest[e.UserToken] = time.UnixMilli(e.Timestamp)
	}
	begun := time.Now()
	last := events[len(events)-1].UserToken
	_, err := d.await(ctx, last, func(p api.Profile) bool { return !p.LastEventAt.Before(newest[last]) })
	if err != nil {
		return nil, err
	}
	d.print("live: %d events sent to POST /1/events, the last one was in its profile %d ms later", len(events),
		time.Since(begun).Milliseconds())
	return newest, nil
}

// profiles waits until the profiles of two people are ready, and prints them on the tour.
func (d *demo) profiles(ctx context.Context, ready func(api.Profile) bool) error {
	for _, id := range shownPersonas {
		p, err := d.await(ctx, shop.UserToken(id, 0), ready)
		if err != nil {
			return err
		}
		if !d.tour {
			continue
		}
		persona, _ := d.shop.Persona(id)
		d.print("")
		d.print("%s %s", d.colors.Bold("the "+persona.ID+"'s taste:"), persona.Taste)
		if err := render.Profile(d.t.Out, p, "", nil, d.colors); err != nil {
			return fmt.Errorf("print a profile: %w", err)
		}
	}
	return nil
}

// await polls a profile until it is ready.
func (d *demo) await(ctx context.Context, user string, ready func(api.Profile) bool) (api.Profile, error) {
	var found api.Profile
	err := cli.Poll(ctx, demoTimeout, func() (bool, error) {
		p, err := d.c.Profiles().Get(ctx, user, api.ProfileQuery{Limit: demoBars})
		if command.StatusOf(err) == http.StatusNotFound {
			return false, nil
		}
		found = p
		return err == nil && ready(p), err
	})
	if err != nil {
		return found, fmt.Errorf("wait for the profile of %s: %w", user, err)
	}
	return found, nil
}

// demoSegment are people who like the brand that rises: a segment to look at.
const demoSegment = "littlebee"

// prepare builds the statistics that rankings use. An engine that goes on folds histories and
// builds the lists of segments after it, and judges the strategy: the console then has
// something to show. An import is followed by the first two a minute later, and people are
// faster.
func (d *demo) prepare(ctx context.Context) error {
	build, err := d.c.Jobs().BuildCrowd(ctx, api.CrowdRequest{})
	if err != nil {
		return fmt.Errorf("build the demo's statistics: %w", err)
	}
	err = cli.Poll(ctx, demoTimeout, func() (bool, error) {
		crowd, err := d.c.Jobs().Crowd(ctx)
		at := slices.IndexFunc(crowd.Builds, func(b api.CrowdBuild) bool { return b.ID == build.ID })
		return at >= 0 && crowd.Builds[at].State.Ended(), err
	})
	if err != nil || d.once {
		return err
	}
	if err := d.apps.SetSegments(ctx, d.c.App(), true); err != nil {
		return fmt.Errorf("turn the demo's segments on: %w", err)
	}
	littlebee := api.SegmentCondition{Filter: "brand:Littlebee", Above: 10_000}
	if _, err := d.c.Segments().Save(ctx, demoSegment, littlebee, false); err != nil {
		return fmt.Errorf("save the demo's segment: %w", err)
	}
	if _, err := d.c.Jobs().StartRecompute(ctx, api.RecomputeRequest{OnlyStale: true, Fold: true}); err != nil {
		return fmt.Errorf("fold the demo's histories: %w", err)
	}
	judge := api.BacktestRequest{Index: shop.Index, Within: "categories.lvl0",
		Strategies: []json.RawMessage{json.RawMessage("2")}}
	if _, err := d.c.Jobs().StartBacktest(ctx, judge); err != nil {
		return fmt.Errorf("judge the demo's strategy: %w", err)
	}
	return nil
}
