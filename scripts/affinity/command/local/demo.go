package local

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/scripts/affinity/shop"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/operator"
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
    {"facetName": "price", "score": 30},
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
    {"facetName": "price", "score": 30},
    {"facetName": "tags", "score": 20}
  ],
  "personalizationImpact": 50,
  "halfLives": [7]
}`
	demoChanged = "orders 30 -> 100, carts 20 -> 40, clicks 10 -> 5, views 5 -> 1; " +
		"brand 60 -> 100, category 100 -> 60; half-life none -> 7 days"
)

const (
	demoLive    = 84              // live events, the same number of each persona
	demoBars    = 8               // affinities shown of each profile
	demoTimeout = 3 * time.Minute // how long the demo waits at most until an event counts or a job has ended
)

type demoOptions struct {
	seed       uint64
	once, tour bool
}

// Demo returns the command demo, which starts an engine with start.
func Demo(t *command.Tool, start Starter) *cobra.Command {
	f := &upFlags{}
	o := demoOptions{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Start the engine and show it with a simulated shop",
		Long: "Start the engine and import a simulated shop with a month of its visitors' events. Say what to click and what to type,\n" +
			"and serve until Ctrl-C. With --tour, print before it what the engine makes of the shop: two profiles, the same under\n" +
			"another strategy, a page in the order for each of the two, a search in the syntax of two search engines, and what a\n" +
			"sign-in does to the order of a page.\n" +
			"The flags of up apply. With --data, a second demo shows the shop that the folder holds.",
		Example: "  affinity demo\n  affinity demo --tour --seed 7 --once\n  affinity demo --data ./affinity-demo",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			up, err := f.options(cmd)
			if err != nil {
				return err
			}
			up.Links = true
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
	cmd.AddCommand(demoMoveCommand(t, start), demoExperimentCommand(t, start))
	cmd.Flags().Uint64Var(&o.seed, "seed", 1, "seed of the shop: the same seed gives the same shop")
	cmd.Flags().BoolVar(&o.once, "once", false, "end when the shop is there instead of serving")
	cmd.Flags().BoolVar(&o.tour, "tour", false, "print profiles, a page and a search for two of the shop's visitors")
	return cmd
}

// demo is one run on one engine.
type demo struct {
	t    *command.Tool
	c    *client.Client
	apps *operator.Client
	key  string
	shop *shop.Shop
	demoOptions
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
	if err != nil {
		return nil, err
	}
	apps, err := operator.NewClient(base, up.Operator)
	return &demo{
		t: t, c: c, apps: apps, key: app.Key, shop: shop.New(o.seed), demoOptions: o, data: up.Data != "",
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
		if err := d.profiles(ctx, func(api.Profile) bool { return true }); err != nil {
			return err
		}
	} else if err := d.begin(ctx); err != nil {
		return err
	}
	if d.tour {
		if err := d.reorder(ctx); err != nil {
			return err
		}
		if err := d.search(ctx); err != nil {
			return err
		}
		if err := d.evening(ctx); err != nil {
			return err
		}
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

// begin imports the shop under two versions of a strategy, so that there is something to
// compare. The tour shows two profiles under each: it changes the strategy of a filled engine.
func (d *demo) begin(ctx context.Context) error {
	if err := d.c.Strategies().SetJSON(ctx, json.RawMessage(demoStrategy), client.SetOptions{}); err != nil {
		return fmt.Errorf("set the demo's strategy: %w", err)
	}
	settings := api.Settings{AttributesForFaceting: shop.Facets,
		NumericBands: map[string][]float64{"price": shop.PriceBands}}
	if _, err := d.c.Catalog().SetSettings(ctx, shop.Index, settings); err != nil {
		return fmt.Errorf("set the facets of the demo's index: %w", err)
	}
	steps := []func(context.Context) error{d.change, d.fill, d.prepare}
	if d.tour {
		steps = []func(context.Context) error{d.fill, d.change, d.changed, d.prepare}
	}
	for _, do := range steps {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// change sets the second version of the strategy.
func (d *demo) change(ctx context.Context) error {
	note := client.SetOptions{Note: "Orders say more than views, and what is old says less"}
	if err := d.c.Strategies().SetJSON(ctx, json.RawMessage(demoChange), note); err != nil {
		return fmt.Errorf("change the demo's strategy: %w", err)
	}
	return nil
}

// fill imports the history, sends live events, and waits for the profiles of two people.
func (d *demo) fill(ctx context.Context) error {
	if err := d.history(ctx); err != nil {
		return err
	}
	newest, err := d.live(ctx)
	if err != nil {
		return err
	}
	return d.profiles(ctx, func(p api.Profile) bool { return !p.LastEventAt.Before(newest[p.UserToken]) })
}

// changed shows the two profiles under the second version.
func (d *demo) changed(ctx context.Context) error {
	d.print("")
	d.print("%s %s", d.colors.Bold("strategy change:"), demoChanged)
	return d.profiles(ctx, func(p api.Profile) bool { return p.StrategyVersion == 2 })
}
