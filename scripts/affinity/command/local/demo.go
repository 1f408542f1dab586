package local

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/importer"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/scripts/affinity/shop"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// demoStrategy is the demo's first strategy: views count, however old they are.
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

// demoChange is the demo's second strategy, demoChanged what differs in it.
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
	demoLive    = 84               // live events, the same number of each persona
	demoBars    = 8                // affinities shown of each profile
	demoTimeout = 30 * time.Second // how long the demo waits for an event or a strategy to be visible
)

type demoOptions struct {
	seed uint64
	once bool
}

// Demo returns the command demo, which starts an engine with start.
func Demo(t *command.Tool, start Starter) *cobra.Command {
	f := &upFlags{}
	o := demoOptions{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Start the engine and show it with a simulated shop",
		Long: "Start the engine and import a simulated shop with a month of its visitors' events. Show two profiles, change the\n" +
			"strategy, show them again, a page in the order for each of the two, and a search in the syntax of two search engines.\n" +
			"Then serve until Ctrl-C. The flags of up apply. With --data, a second demo shows the shop that the folder holds.",
		Example: "  affinity demo\n  affinity demo --seed 7 --once\n  affinity demo --data ./affinity-demo",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			up, err := f.options(cmd)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), t, start, up, func(ctx context.Context, stack RunningStack) error {
				d, err := newDemo(t, stack.URL(), up, o)
				if err != nil {
					return err
				}
				d.console = func() string { return stack.ConsoleLink(up.Apps[0].ID, up.Apps[0].Key) }
				return d.show(ctx)
			}, o.once)
		},
	}
	f.add(cmd)
	cmd.AddCommand(demoMoveCommand(t, start))
	cmd.Flags().Uint64Var(&o.seed, "seed", 1, "seed of the shop: the same seed gives the same shop")
	cmd.Flags().BoolVar(&o.once, "once", false, "end after the last page instead of serving")
	return cmd
}

// demo is one run on one engine.
type demo struct {
	t    *command.Tool
	c    *client.Client
	key  string
	shop *shop.Shop
	seed uint64
	once bool
	data bool // the engine has a data folder
	// now is the engine's clock, or a moment behind it, so that no event is from the
	// engine's future.
	now    func() time.Time
	colors *render.Palette
	// console returns a link that opens the console once.
	console func() string
}

func newDemo(t *command.Tool, base string, up Options, o demoOptions) (*demo, error) {
	now := time.Now
	if !up.Now.IsZero() {
		begun := time.Now() // the engine's clock started a moment ago
		now = func() time.Time { return up.Now.Add(time.Since(begun)) }
	}
	app := up.Apps[0]
	c, err := client.New(client.Config{URL: base, App: app.ID, Key: app.Key, Retry: client.NoRetry})
	return &demo{
		t: t, c: c, key: app.Key, shop: shop.New(o.seed), seed: o.seed, once: o.once, data: up.Data != "",
		now: now, colors: render.NewPalette(cli.Colored(t.Out)),
	}, err
}

// shownPersonas are the personas whose profiles are shown: one with a constant
// taste, one whose taste changed.
var shownPersonas = []string{"runner", "newparent"}

// show runs the whole demo. A data folder that holds the shop already is shown as it is.
func (d *demo) show(ctx context.Context) error {
	kept, err := d.kept(ctx)
	if err != nil {
		return err
	}
	if kept {
		d.print("the data folder holds the shop of an earlier demo: nothing is imported")
		if _, err := d.profiles(ctx, func(api.Profile) bool { return true }); err != nil {
			return err
		}
	} else if err := d.begin(ctx); err != nil {
		return err
	}
	if err := d.reorder(ctx); err != nil {
		return err
	}
	if err := d.search(ctx); err != nil {
		return err
	}
	d.farewell()
	return nil
}

// kept reports whether the data folder holds what an earlier demo made.
func (d *demo) kept(ctx context.Context) (bool, error) {
	if !d.data {
		return false, nil
	}
	versions, err := d.c.Strategies().Versions(ctx)
	if err != nil {
		return false, fmt.Errorf("look for the shop in the data folder: %w", err)
	}
	return len(versions.Versions) > 0, nil
}

// begin imports the shop, shows two profiles, and shows them again under another strategy.
func (d *demo) begin(ctx context.Context) error {
	if err := d.c.Strategies().SetJSON(ctx, json.RawMessage(demoStrategy), client.SetOptions{}); err != nil {
		return fmt.Errorf("set the demo's strategy: %w", err)
	}
	if err := d.history(ctx); err != nil {
		return err
	}
	newest, err := d.live(ctx)
	if err != nil {
		return err
	}
	first, err := d.profiles(ctx, func(p api.Profile) bool { return !p.LastEventAt.Before(newest[p.UserToken]) })
	if err != nil {
		return err
	}
	d.print("")
	d.print("%s %s", d.colors.Bold("strategy change:"), demoChanged)
	if err := d.c.Strategies().SetJSON(ctx, json.RawMessage(demoChange), client.SetOptions{}); err != nil {
		return fmt.Errorf("change the demo's strategy: %w", err)
	}
	if _, err = d.profiles(ctx, func(p api.Profile) bool { return p.StrategyVersion > first }); err != nil || d.once {
		return err
	}
	// An import is followed by this recompute a minute later. The console's previews read folded
	// histories ten times as fast, and may be opened sooner.
	if _, err := d.c.Jobs().StartRecompute(ctx, api.RecomputeRequest{OnlyStale: true, Fold: true}); err != nil {
		return fmt.Errorf("fold the demo's histories: %w", err)
	}
	return nil
}

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

// profiles prints the two profiles once they are ready, and returns the version of
// their strategy.
func (d *demo) profiles(ctx context.Context, ready func(api.Profile) bool) (int64, error) {
	var version int64
	for _, id := range shownPersonas {
		p, err := d.await(ctx, shop.UserToken(id, 0), ready)
		if err != nil {
			return 0, err
		}
		version = p.StrategyVersion
		persona, _ := d.shop.Persona(id)
		d.print("")
		d.print("%s %s", d.colors.Bold("the "+persona.ID+"'s taste:"), persona.Taste)
		if err := render.Profile(d.t.Out, p, "", nil, d.colors); err != nil {
			return 0, fmt.Errorf("print a profile: %w", err)
		}
	}
	return version, nil
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

// farewell prints requests to try next, of an engine that goes on.
func (d *demo) farewell() {
	if d.once {
		return
	}
	auth := "-H 'x-algolia-application-id: " + d.c.App() + "' -H " + quote("x-algolia-api-key: "+d.key)
	event := `{"events":[{"eventType":"click","eventName":"Product Clicked","index":"` + shop.Index +
		`","userToken":"you","objectIDs":["` +
		d.shop.Objects()[0].ObjectID + `"]}]}`
	d.print("")
	d.print("your turn:  curl '%s/1/events' %s -d '%s'", d.c.URL(), auth, event)
	d.print("            curl '%s/1/profiles/you' %s", d.c.URL(), auth)
	engine := fmt.Sprintf("--url %s --app %s --key %s", d.c.URL(), d.c.App(), quote(d.key))
	d.print("            %s rank %s --user you --index %s P106 P306 P406", command.CalledAs(), engine, shop.Index)
	d.print("            %s boosts %s you --engine typesense --limit 3", command.CalledAs(), engine)
	d.print("look at it: the console, with this link once within ten minutes, or with app %s and its key:", d.c.App())
	d.print("            %s", d.console())
	d.print("serving on %s until Ctrl-C", d.c.URL())
}

func (d *demo) print(format string, args ...any) { fmt.Fprintf(d.t.Out, format+"\n", args...) }

// quote makes text one word for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
