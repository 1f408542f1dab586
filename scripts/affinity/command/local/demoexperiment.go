package local

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/importer"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/scripts/affinity/shop"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/operator"
)

const (
	// experimentApp has the experiment. In mirrorApp the same people are in the other arm.
	experimentApp, mirrorApp = "demo", "mirror"
	demoExperiment           = "personalization"
	ownOrder, bestOrder      = "own-order", "personalized"
	// daysBefore is how many days people come before the experiment begins.
	daysBefore = 14
	// askers is how many people ask for an order at a time.
	askers = 8
)

// experimentStrategy is that of an arm with an impact in percent.
const experimentStrategy = `{
  "eventsScoring": [
    {"eventName": "Product Clicked", "eventType": "click", "score": 10},
    {"eventName": "Order Completed", "eventType": "conversion", "score": 30}
  ],
  "facetsScoring": [
    {"facetName": "categories.lvl0", "score": 100},
    {"facetName": "brand", "score": 40},
    {"facetName": "color", "score": 40}
  ],
  "personalizationImpact": %d
}`

// impact is that of the arm bestOrder. That of ownOrder is 0: the order of the shop stays.
const impact = 80

type demoExperimentOptions struct {
	addr         string
	people, days int
	seed         uint64
	once         bool
}

func demoExperimentCommand(t *command.Tool, start Starter) *cobra.Command {
	o := demoExperimentOptions{}
	cmd := &cobra.Command{
		Use:   "experiment",
		Short: "Start the engine and compare its report of an experiment with the truth",
		Long: "Start the engine in memory and let simulated people visit a shop, half of whom see its products in the\n" +
			"shop's own order and half in the engine's. They click and buy by what they are shown, so the true lift is known:\n" +
			"the same people visit a second shop where each is in the other arm, and what a visit brings on average is computed.\n" +
			"Print that truth beside the engine's report, and serve until Ctrl-C. The days pass at once: the clock of the\n" +
			"engine is simulated.",
		Example: "  affinity demo experiment\n  affinity demo experiment --people 5000 --days 28 --seed 7 --once",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.people < 100 || o.people > 100_000 || o.days < 1 || o.days > 60 {
				return cli.Usagef("--people must be 100 to 100000, and --days 1 to 60")
			}
			clock := newDayClock(daysBefore + o.days)
			up := Options{
				Addr: o.addr, Apps: []App{{experimentApp, demoKey}, {mirrorApp, demoKey}}, RetentionDays: 90,
				Clock: clock.now, Operator: operator.NewToken(),
				Log: slog.New(slog.NewTextHandler(t.Err, &slog.HandlerOptions{Level: slog.LevelWarn})),
			}
			if err := checkAddr(up); err != nil {
				return err
			}
			return serve(cmd.Context(), t, start, up, func(ctx context.Context, s RunningStack) error {
				d, err := newDemoExperiment(t, s, clock, o)
				if err != nil {
					return err
				}
				return d.show(ctx)
			}, o.once)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.addr, "addr", "127.0.0.1:8080", "address to serve on; port 0 chooses a free one")
	flags.IntVar(&o.people, "people", 2000, "how many people visit the shop")
	flags.IntVar(&o.days, "days", 10, "how many days the experiment lasts")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the shop and of what people do: the same seed gives the same")
	flags.BoolVar(&o.once, "once", false, "end when the report is printed instead of serving")
	return cmd
}

// dayClock is a clock that can be moved on by days.
type dayClock struct {
	start, began time.Time
	days         atomic.Int64
}

// newDayClock returns a clock that begins so many days ago, at noon, so that no visit falls on two days.
func newDayClock(days int) *dayClock {
	now := time.Now()
	return &dayClock{start: now.UTC().Truncate(day).Add(day/2).AddDate(0, 0, -days), began: now}
}

const day = 24 * time.Hour

func (c *dayClock) now() time.Time {
	return c.start.Add(time.Since(c.began)).AddDate(0, 0, int(c.days.Load()))
}

// visited is what one visit has shown.
type visited struct {
	version int64   // of the strategy that ordered the page; 0: none did
	clicks  float64 // on average
	events  []api.Event
}

type experimentDemo struct {
	*demoExperimentOptions
	t       *command.Tool
	engine  RunningStack
	clock   *dayClock
	shop    *shop.Shop
	buyers  []shop.Buyer
	objects map[string]shop.Object
	apps    []*client.Client
	// clicks of the days of the experiment on average, by the version of the strategy.
	clicks map[int64]float64
}

func newDemoExperiment(t *command.Tool, engine RunningStack, clock *dayClock,
	o demoExperimentOptions) (*experimentDemo, error) {
	d := &experimentDemo{demoExperimentOptions: &o, t: t, engine: engine, clock: clock, shop: shop.New(o.seed),
		objects: map[string]shop.Object{}, clicks: map[int64]float64{}}
	d.buyers = d.shop.Buyers(o.people)
	for _, object := range d.shop.Objects() {
		d.objects[object.ObjectID] = object
	}
	for _, app := range []string{experimentApp, mirrorApp} {
		c, err := client.New(client.Config{URL: engine.URL(), App: app, Key: demoKey})
		if err != nil {
			return nil, err
		}
		d.apps = append(d.apps, c)
	}
	return d, nil
}

func (d *experimentDemo) print(format string, args ...any) {
	fmt.Fprintf(d.t.Out, format+"\n", args...)
}

// show runs the whole simulation and prints what it has shown.
func (d *experimentDemo) show(ctx context.Context) error {
	d.print("%d people visit a simulated shop for %d days. Then half of them see the order of the engine, for %d days.",
		d.people, daysBefore, d.days)
	d.print("On a day %.0f %% come. They look at place k of a page of %d products with a chance of 1/k, "+
		"click what they look at with",
		100*shop.ComeShare, shop.PageSize)
	d.print("a chance of %.0f %% to %.0f %%, by a taste that the engine cannot see, "+
		"and order %.0f %% of what they click. Orders are",
		100*shop.LeastClicked, 100*shop.MostClicked, 100*shop.BuyShare)
	d.print("log-normal: half are above %.0f EUR, and their logarithm has a standard deviation of %.0f.",
		shop.OrderMedian, shop.OrderSigma)
	for _, c := range d.apps {
		if err := d.prepare(ctx, c); err != nil {
			return fmt.Errorf("prepare the shop %s: %w", c.App(), err)
		}
	}
	for n := range daysBefore + d.days {
		for _, c := range d.apps {
			if n == daysBefore {
				if err := begin(ctx, c); err != nil {
					return err
				}
			}
			if err := d.day(ctx, c, n); err != nil {
				return fmt.Errorf("day %d of the simulation: %w", n+1, err)
			}
		}
		if err := d.engine.Idle(ctx); err != nil {
			return err
		}
		d.clock.days.Add(1)
	}
	return d.compare(ctx)
}

// The strategies of an app. The second one, which leaves the order as it is, is active.
const (
	bestVersion = 1
	ownVersion  = 2
)

// prepare gives a shop its products and its strategies.
func (d *experimentDemo) prepare(ctx context.Context, c *client.Client) error {
	for _, impact := range []int{impact, 0} {
		text := json.RawMessage(fmt.Sprintf(experimentStrategy, impact))
		if err := c.Strategies().SetJSON(ctx, text, client.SetOptions{}); err != nil {
			return err
		}
	}
	if _, err := c.Catalog().SetSettings(ctx, shop.Index, api.Settings{AttributesForFaceting: shop.Facets}); err != nil {
		return err
	}
	catalog, err := sourceOf("catalog", d.shop.Objects())
	if err != nil {
		return err
	}
	_, err = importer.New(c, d.t.Retry, d.t.Err).Objects(ctx, catalog, shop.Index)
	return err
}

// begin begins the experiment. In the mirror each arm has the strategy of the other one.
func begin(ctx context.Context, c *client.Client) error {
	arms := []api.ExperimentArm{{Name: ownOrder, Strategy: ownVersion, Weight: 0.5},
		{Name: bestOrder, Strategy: bestVersion, Weight: 0.5}}
	if c.App() == mirrorApp {
		arms[0].Strategy, arms[1].Strategy = arms[1].Strategy, arms[0].Strategy
	}
	_, err := c.Experiments().Set(ctx, demoExperiment, api.SetExperiment{Metric: "conversions", Arms: arms})
	return err
}

// day lets all who come on a day visit a shop.
func (d *experimentDemo) day(ctx context.Context, c *client.Client, n int) error {
	page, visits := d.shop.Page(n), make([]visited, len(d.buyers))
	g, ask := errgroup.WithContext(ctx)
	g.SetLimit(askers)
	for i, b := range d.buyers {
		if b.Comes(n) {
			g.Go(func() (err error) {
				visits[i], err = d.visit(ask, c, b, n, page)
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var events []api.Event
	for _, v := range visits {
		d.clicks[v.version] += v.clicks
		events = append(events, v.events...)
	}
	for some := range slices.Chunk(events, api.MaxEvents) {
		if err := c.Events().Send(ctx, some...); err != nil {
			return err
		}
	}
	return nil
}

// visit lets a buyer visit a shop: before the experiment in its own order, then in that which the engine says.
func (d *experimentDemo) visit(ctx context.Context, c *client.Client, b shop.Buyer, n int,
	page []shop.Object) (v visited, err error) {
	shown, query := page, ""
	if n >= daysBefore {
		request := api.RankRequest{UserToken: b.Token, Index: shop.Index}
		for i, o := range page {
			request.Items = append(request.Items, api.RankItem{ID: o.ObjectID,
				Fields: []api.RankField{{Name: api.FieldRelevancy, Value: float64(len(page) - i)}}})
		}
		answer, err := c.Rank(ctx, request)
		if err != nil {
			return v, fmt.Errorf("order the page for %s: %w", b.Token, err)
		}
		v.version, query, shown = answer.StrategyVersion, answer.ID, nil
		for _, item := range answer.Items {
			shown = append(shown, d.objects[item.ObjectID])
		}
		v.clicks = b.Expects(shown)
	}
	at := d.clock.now().UnixMilli()
	event := func(kind, name string, o shop.Object) *api.Event {
		at++ // two events of one time would be in an order of chance
		v.events = append(v.events, api.Event{EventType: kind, EventName: name, Index: shop.Index, UserToken: b.Token,
			Timestamp: at, ObjectIDs: []string{o.ObjectID}, QueryID: query})
		return &v.events[len(v.events)-1]
	}
	event(api.EventView, "Page Viewed", shown[0]) // who comes counts, whatever the order makes them do
	for _, did := range b.Visit(n, shown) {
		o := shown[did.Place-1]
		if click := event(api.EventClick, "Product Clicked", o); query != "" {
			click.Positions = []int{did.Place}
		}
		if did.Amount > 0 {
			order := event(api.EventConversion, "Order Completed", o)
			order.EventSubtype, order.Currency = "purchase", "EUR"
			order.ObjectData = []api.ObjectData{{Price: did.Amount, Quantity: 1, QueryID: query}}
		}
	}
	return v, nil
}

// compare asks for the report and prints it beside the truth.
func (d *experimentDemo) compare(ctx context.Context) error {
	truth, jobs := d.clicks[bestVersion]/d.clicks[ownVersion]-1, d.apps[0].Jobs()
	j, err := jobs.StartReport(ctx, api.ReportRequest{Experiment: demoExperiment})
	if err != nil {
		return fmt.Errorf("start the report: %w", err)
	}
	j, err = command.Follow(ctx, d.t, d.apps[0], "watch report "+j.ID, func(c *client.Client) (api.ReportJob, error) {
		return c.Jobs().Report(ctx, j.ID)
	}, render.ReportProgress)
	if err == nil {
		err = command.Failure("report "+j.ID, j.State, j.Error)
	}
	if err != nil {
		return err
	}
	var decides api.ExperimentReport
	var rows [][]any
	for _, metric := range []string{"clicks", "revenue", "conversions"} {
		if decides, err = jobs.ExperimentReport(ctx, demoExperiment, api.ExperimentReportQuery{Metric: metric}); err != nil {
			return fmt.Errorf("read the report: %w", err)
		}
		rows = append(rows, comparison(decides.Lift[0], truth))
	}
	d.print("")
	d.print("The truth: the order of the engine makes them click, order and pay %s. "+
		"Each of them was simulated in both arms, with the",
		more(truth))
	d.print("same draws, and what a visit brings on average was added up.")
	d.print("")
	if err := cli.Table(d.t.Out, "METRIC\tREPORTED\t95 % INTERVAL\tHOLDS THE TRUTH", rows,
		func(row []any) []any { return row }); err != nil {
		return err
	}
	d.print("")
	d.print("The report of %s: %s", demoExperiment, decides.Words)
	d.farewell()
	return nil
}

func more(truth float64) string {
	if truth < 0 {
		return fmt.Sprintf("%.1f %% less", -100*truth)
	}
	return fmt.Sprintf("%.1f %% more", 100*truth)
}

// comparison is a row of the table that says whether a report holds the truth.
func comparison(l api.ReportLift, truth float64) []any {
	interval, holds := "-", "too few people"
	if l.Low != nil && l.High != nil {
		interval, holds = render.Share(l.Low)+" to "+render.Share(l.High), "no"
		if *l.Low <= truth && truth <= *l.High {
			holds = "yes"
		}
	}
	return []any{l.Metric, render.Share(l.Relative), interval, holds}
}

// farewell says where to look at an engine that goes on.
func (d *experimentDemo) farewell() {
	if d.once {
		return
	}
	d.print("")
	d.print("the console, with this link once within ten minutes: %s", d.engine.ConsoleLink(experimentApp, demoKey))
	d.print("Strategy, Experiments has the report. The same by a command:")
	d.print("  %s experiment report %s --last --url %s --app %s --key %s", command.CalledAs(), demoExperiment,
		d.engine.URL(), experimentApp, demoKey)
	d.print("serving on %s until Ctrl-C", d.engine.URL())
}
