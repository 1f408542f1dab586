package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/shop"
)

// demoStrategy is what the demo starts with: whatever was looked at counts, whenever it was.
const demoStrategy = `{
  "eventsScoring": [
    {"eventName": "Product Viewed", "eventType": "view", "score": 5},
    {"eventName": "Product Clicked", "eventType": "click", "score": 10},
    {"eventName": "Added To Cart", "eventType": "conversion", "score": 20},
    {"eventName": "Order Completed", "eventType": "conversion", "score": 30}
  ],
  "facetsScoring": [
    {"facetName": "categories.lvl0", "score": 100},
    {"facetName": "brand", "score": 60},
    {"facetName": "color", "score": 40},
    {"facetName": "price_range", "score": 30},
    {"facetName": "tags", "score": 20}
  ],
  "personalizationImpact": 50
}`

// demoChange is what the demo changes it to, demoChanged what that comes to.
const (
	demoChange = `{
  "eventsScoring": [
    {"eventName": "Product Viewed", "eventType": "view", "score": 1},
    {"eventName": "Product Clicked", "eventType": "click", "score": 5},
    {"eventName": "Added To Cart", "eventType": "conversion", "score": 40},
    {"eventName": "Order Completed", "eventType": "conversion", "score": 100}
  ],
  "facetsScoring": [
    {"facetName": "categories.lvl0", "score": 60},
    {"facetName": "brand", "score": 100},
    {"facetName": "color", "score": 40},
    {"facetName": "price_range", "score": 30},
    {"facetName": "tags", "score": 20}
  ],
  "personalizationImpact": 50,
  "halfLives": [7]
}`
	demoChanged = "orders 30 -> 100, carts 20 -> 40, clicks 10 -> 5, views 5 -> 1; " +
		"brand 60 -> 100, category 100 -> 60; half-life none -> 7 days"
)

const (
	demoLive   = 84               // events of the live tail, the same number by each persona
	demoBars   = 8                // affinities shown of each profile
	demoWithin = 30 * time.Second // how long the demo waits for something to be visible
)

type demoOptions struct {
	seed uint64
	once bool
}

func (t *tool) demoCommand() *cobra.Command {
	f := &upFlags{}
	o := demoOptions{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Start the engine and show it at work on a simulated shop",
		Long: "Start the engine, fill it with a simulated shop and a month of its visitors, show two of their profiles, change the\n" +
			"strategy and show them again; then serve until Ctrl-C. It takes the flags of up.",
		Example: "  affinity demo\n  affinity demo --seed 7 --once",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			up, err := t.upOptions(cmd, f)
			if err != nil {
				return err
			}
			return t.serve(cmd.Context(), up, func(ctx context.Context, stack runningStack) error {
				return t.newDemo(stack.URL(), up, o).show(ctx)
			}, o.once)
		},
	}
	f.add(cmd)
	cmd.Flags().Uint64Var(&o.seed, "seed", 1, "seed of the shop: the same seed gives the same shop")
	cmd.Flags().BoolVar(&o.once, "once", false, "end after the show")
	return cmd
}

// demo is one show on one engine.
type demo struct {
	t      *tool
	c      *client
	shop   *shop.Shop
	seed   uint64
	once   bool
	now    func() time.Time // the engine's clock, or a moment behind it: never ahead, so that no event is of the future
	colors *palette
}

func (t *tool) newDemo(base string, up upOptions, o demoOptions) *demo {
	now := time.Now
	if !up.Now.IsZero() {
		begun := time.Now() // the engine's clock started a moment ago
		now = func() time.Time { return up.Now.Add(time.Since(begun)) }
	}
	return &demo{
		t: t, c: newClient(base, up.Apps[0].ID, up.Apps[0].Key), shop: shop.New(o.seed), seed: o.seed, once: o.once,
		now: now, colors: newPalette(cli.Colored(t.out)),
	}
}

// shown are the personas whose regulars' profiles are shown: one whose taste holds still, one whose taste changed.
var shown = []string{"runner", "newparent"}

// show is the whole demo.
func (d *demo) show(ctx context.Context) error {
	if err := setStrategy(ctx, d.c, []byte(demoStrategy)); err != nil {
		return fmt.Errorf("set the demo's strategy: %w", err)
	}
	if err := d.history(ctx); err != nil {
		return err
	}
	newest, err := d.live(ctx)
	if err != nil {
		return err
	}
	first, err := d.profiles(ctx, func(p profileAnswer) bool { return !p.LastEventAt.Before(newest[p.UserToken]) })
	if err != nil {
		return err
	}
	d.say("")
	d.say("%s %s", d.colors.bold("strategy change:"), demoChanged)
	if err := setStrategy(ctx, d.c, []byte(demoChange)); err != nil {
		return fmt.Errorf("change the demo's strategy: %w", err)
	}
	if _, err := d.profiles(ctx, func(p profileAnswer) bool { return p.StrategyVersion > first }); err != nil {
		return err
	}
	d.farewell()
	return nil
}

// history loads the catalogue and a month of events, as the import command does.
func (d *demo) history(ctx context.Context) error {
	objects, events := d.shop.Objects(), d.shop.History(d.now())
	d.say("the shop sells %d products to %d people of %d kinds (seed %d)", len(objects), shop.UsersPerPersona*len(d.shop.Personas()),
		len(d.shop.Personas()), d.seed)
	im := &importer{c: d.c, wait: d.t.wait, bad: &badLines{}}
	begun := time.Now()
	catalogue, err := sourceOf("catalogue", objects)
	if err != nil {
		return err
	}
	m := newMeter(d.t.err, "objects", catalogue)
	_, err = im.objects(ctx, catalogue, m, shop.Index)
	m.finish()
	if err != nil {
		return err
	}
	history, err := sourceOf("history", events)
	if err != nil {
		return err
	}
	m = newMeter(d.t.err, "events", history)
	counts, err := im.events(ctx, history, m, shop.Index)
	m.finish()
	if err != nil {
		return err
	}
	if err := im.bad.err(); err != nil {
		return fmt.Errorf("the engine refused some of the demo's own data: %w", err)
	}
	took := time.Since(begun)
	d.say("%d days of history: %d events imported in %.1f s (%.0f events/s)", shop.HistoryDays, counts.Accepted, took.Seconds(),
		perSecond(counts.Accepted, took))
	return nil
}

// sourceOf is a source of one line an item.
func sourceOf[T any](name string, items []T) (*source, error) {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, item := range items {
		if err := encoder.Encode(item); err != nil {
			return nil, fmt.Errorf("encode the demo's %s: %w", name, err)
		}
	}
	return newSource(name, &lines, int64(lines.Len())), nil
}

// live sends events as a shop does, one request a visitor's step, and returns the time of each visitor's newest.
func (d *demo) live(ctx context.Context) (map[string]time.Time, error) {
	newest := map[string]time.Time{}
	events := d.shop.Live(d.now(), demoLive)
	for _, e := range events {
		body, err := json.Marshal(map[string]any{"events": []shop.Event{e}})
		if err != nil {
			return nil, fmt.Errorf("encode a live event: %w", err)
		}
		if _, err := d.c.do(ctx, http.MethodPost, "/1/events", body); err != nil {
			return nil, fmt.Errorf("send a live event: %w", err)
		}
		newest[e.UserToken] = time.UnixMilli(e.Timestamp)
	}
	begun := time.Now()
	last := events[len(events)-1].UserToken
	_, err := d.await(ctx, last, func(p profileAnswer) bool { return !p.LastEventAt.Before(newest[last]) })
	if err != nil {
		return nil, err
	}
	d.say("live: %d events sent to POST /1/events, the last one was in its profile %d ms later", len(events), time.Since(begun).Milliseconds())
	return newest, nil
}

// profiles shows the two profiles as soon as they are fit to be, and returns the strategy version they are under.
func (d *demo) profiles(ctx context.Context, fit func(profileAnswer) bool) (int64, error) {
	var version int64
	for _, id := range shown {
		p, err := d.await(ctx, shop.UserToken(id, 0), fit)
		if err != nil {
			return 0, err
		}
		version = p.StrategyVersion
		persona, _ := d.shop.Persona(id)
		d.say("")
		d.say("%s %s", d.colors.bold("the "+persona.ID+"'s taste:"), persona.Taste)
		if err := drawProfile(d.t.out, p, 0, d.colors); err != nil {
			return 0, fmt.Errorf("print a profile: %w", err)
		}
	}
	return version, nil
}

// await polls a profile until it is fit.
func (d *demo) await(ctx context.Context, user string, fit func(profileAnswer) bool) (profileAnswer, error) {
	var found profileAnswer
	err := poll(ctx, demoWithin, func() (bool, error) {
		var p profileAnswer
		err := d.c.get(ctx, profilePath(user, profileOptions{limit: demoBars}), &p)
		if statusOf(err) == http.StatusNotFound {
			return false, nil
		}
		found = p
		return err == nil && fit(p), err
	})
	if err != nil {
		return found, fmt.Errorf("wait for the profile of %s: %w", user, err)
	}
	return found, nil
}

// farewell tells how to go on from here.
func (d *demo) farewell() {
	auth := "-H 'x-algolia-application-id: " + d.c.app + "' -H " + quote("x-algolia-api-key: "+d.c.key)
	event := `{"events":[{"eventType":"click","eventName":"Product Clicked","index":"` + shop.Index + `","userToken":"you","objectIDs":["` +
		d.shop.Objects()[0].ObjectID + `"]}]}`
	d.say("")
	d.say("your turn:  curl '%s/1/events' %s -d '%s'", d.c.base, auth, event)
	d.say("            curl '%s/1/profiles/you' %s", d.c.base, auth)
	if !d.once {
		d.say("serving on %s until Ctrl-C", d.c.base)
	}
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.t.out, format+"\n", args...) }
