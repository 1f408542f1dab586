package plan_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/plan"
	"github.com/affinityengine/affinity/shared/judge/preview"
	"github.com/affinityengine/affinity/shared/judge/price"
)

// small is a workload with short numbers: 10 events a second in requests of their own,
// and 10 reads.
var small = plan.Workload{EventsPerDay: 864_000, Users: 1_000, RetentionDays: 10, EventsPerRequest: 1, ReadsPerSecond: 10, Peak: 2, Clusters: 1, Compression: 1, NodeGiB: 2560}

var simple = plan.Figures{
	RowBytes: 1000, BlockBytes: 100, UserBytes: 10_000, RefreshRows: 3, MessageCPU: 0.002, EventCPU: 0.001, ReadCPU: 0.001,
	RecomputeUserCPU: 0.0001, RecomputeEventCPU: 1e-6, RequestLogs: 0.5, MessageLogs: 1, BalancerLogs: 0.1, LineBytes: 500,
}

// TestBillByHand compares each line with arithmetic that a person can follow. A month
// has 2,628,000 seconds.
func TestBillByHand(t *testing.T) {
	prices := price.List()
	for _, price := range []string{"bigtable_nodes=1", "bigtable_ssd=0.1"} {
		if err := prices.Set(price); err != nil {
			t.Fatal(err)
		}
	}
	b := plan.Compute(small, simple, prices, plan.Push)
	const gib = 1024 * 1024 * 1024
	// 10 requests a second of a tenth of a second each: an instance is busy with
	// probability 1 - 1/e.
	busy := 1 - math.Exp(-1)
	for what, want := range map[string]struct{ quantity, usd float64 }{
		"Bigtable's nodes":                           {730, 730.00},
		"rows of the event log":                      {8_640_000.0 * 1000 / gib, 0.80},
		"histories":                                  {8_640_000.0 * 100 / gib, 0.08},
		"users' rows":                                {1000.0 * 10_000 / gib, 0.00},
		"CPU of ingest, profiles and process":        {3 * busy * 2_628_000, 119.61},
		"their memory":                               {2 * busy * 2_628_000, 8.31},
		"CPU of worker, at night":                    {(0.1 + 8.64) * 30.4166666667, 0.01},
		"requests and pushes":                        {30 * 2.628, 31.54},
		"messages, published and delivered":          {2 * 26_280_000.0 * 1500 / gib / 1024, 2.87},
		"load balancer, in and out":                  {(10*1000 + 10*500 + 10*300 + 10*5000) * 2_628_000.0 / gib, 1.33},
		"log entries of requests and pushes":         {30 * (0.5 + 0.005) * 1000 * 2_628_000 / gib, 18.54},
		"lines of process, one a message":            {10 * 500 * 2_628_000.0 / gib, 6.12},
		"log entries of the load balancer, a sample": {20 * 0.1 * 1200 * 2_628_000 / gib, 2.94},
		"two forwarding rules":                       {730, 18.25},
		"tasks of the nightly rounds":                {30.4166666667 * 2 / 1e6, 0},
	} {
		i := slices.IndexFunc(b.Lines, func(l plan.Line) bool { return l.What == what })
		if i < 0 {
			t.Errorf("the bill has no line %q", what)
			continue
		}
		got := b.Lines[i]
		if math.Abs(got.Quantity-want.quantity) > 1e-6*want.quantity || got.USD == nil || math.Abs(*got.USD-want.usd) > 0.0051 {
			t.Errorf("%s: %v for %v USD, want %v for %v", what, got.Quantity, dollars(got.USD), want.quantity, want.usd)
		}
	}
	// A ticket, and three rows for a refresh: 10 x 4 + 10 rows a second are read. 10
	// events, 10 tickets and 10 profiles are written. The peak is twice as much, and
	// 60 % of a node are used.
	if want := 2 * (50.0/17000 + 30.0/14000) / 0.6; math.Abs(b.Needs.Nodes.Load-want) > 1e-9 || b.Needs.Nodes.Total != 1 {
		t.Errorf("nodes %+v, want a load of %v and one node", b.Needs.Nodes, want)
	}
	// 864 MB of histories and 10 MB of users' rows are scanned at 220 MB/s, and 1,000
	// profiles written.
	if r := b.Needs.Recompute; math.Abs(r.NodeSeconds-(874.0/220+1.0/14)) > 1e-9 || math.Abs(r.CoreSeconds-8.74) > 1e-9 {
		t.Errorf("recompute %+v, want %v and 8.74", r, 874.0/220+1.0/14)
	}
}

// Requests of an app that reach ingest in a window share a message, of 100 events at most.
func TestWindowByHand(t *testing.T) {
	f := simple
	f.RequestCPU = 0.0015
	for _, tt := range []struct {
		window, perDay, customers, packed float64
	}{
		{0, 864_000, 0, 1},
		{100, 864_000, 0, 1 + math.Exp(-1)},       // 10 a second: one in a window
		{100, 864_000, 1, 0.5 + math.Exp(-0.5)},   // two apps
		{500, 86_400_000, 0, 100},                 // 1,000 a second
		{20, 86_400_000, 9, 2.0/1 + math.Exp(-2)}, // 100 a second of each app, see below
	} {
		w := small
		w.PackWindowMs, w.EventsPerDay, w.Customers = tt.window, tt.perDay, tt.customers
		b := plan.Compute(w, f, price.List(), plan.Push)
		perSecond := tt.perDay / 86_400
		// A request takes 0.2 x 3 ms of ingest, whose instances are busy for 60 %: one up to 1,000 a second.
		if got := perSecond * 2_628_000 / b.Needs.Messages; math.Abs(got-tt.packed) > 1e-9 {
			t.Errorf("%+v: %v requests in a message", tt, got)
		}
		// Of a message, the first request takes 2 ms and each other one 1.5, and each event 1.
		messages := perSecond / tt.packed
		process := messages*0.002 + (perSecond-messages)*0.0015 + perSecond*0.001 - perSecond*0.0006
		want := math.Max(1-math.Exp(-messages/10), process/0.6) + math.Max(1-math.Exp(-perSecond/10), perSecond*0.001) + (1 - math.Exp(-1))
		if math.Abs(b.Needs.VCPU-want) > 1e-9 {
			t.Errorf("%+v: %v vCPU, want %v", tt, b.Needs.VCPU, want)
		}
	}
}

// TestShareByHand compares the lines of an app's use with arithmetic that a person can follow:
// 864,000 events in requests of their own, and as many reads.
func TestShareByHand(t *testing.T) {
	prices := price.List()
	if err := prices.Set("bigtable_nodes=1"); err != nil {
		t.Fatal(err)
	}
	const n, gib = 864_000, 1024 * 1024 * 1024
	use := plan.Use{Events: n, Reads: n, Rows: 14_000 * 0.6 * 7200, Bytes: 1}
	terms := plan.Terms{EventsPerRequest: 1, RetentionDays: 73, Clusters: 2}
	s := plan.ShareOf(use, terms, simple, prices)
	for what, want := range map[string]struct{ quantity, usd float64 }{
		"Bigtable's nodes, by rows or bytes":    {2 * 2, 4},
		"the events' storage until they expire": {2 * 2.4 * n * 1100 / gib, math.NaN()}, // 73 days are 2.4 months
		"CPU of ingest, profiles and process":   {n * 0.004 / 0.6, n * 0.004 / 0.6 * 0.000024},
		"their memory":                          {n * (0.003*(0.2*0.5+0.8*1) + 0.001*0.5) / 0.6, n * 0.0032 / 0.6 * 0.0000025},
		"requests and pushes":                   {3 * 0.864, 3 * 0.864 * 0.4},
		"messages, published and delivered":     {2 * n * 1500.0 / gib / 1024, 2 * n * 1500.0 / gib / 1024 * 40},
		"load balancer, in and out":             {n * (1000 + 500 + 300 + 5000.0) / gib, n * 6800.0 / gib * 0.008},
		"answers to the internet":               {n * 5300.0 / gib, math.NaN()},
		"lines of process, one a message":       {n * 500.0 / gib, n * 500.0 / gib * 0.5},
	} {
		i := slices.IndexFunc(s.Lines, func(l plan.Line) bool { return l.What == what })
		if i < 0 {
			t.Fatalf("the share has no line %q", what)
		}
		if got := s.Lines[i]; math.Abs(got.Quantity-want.quantity) > 1e-9*want.quantity || math.IsNaN(want.usd) != (got.USD == nil) ||
			got.USD != nil && math.Abs(*got.USD-want.usd) > 1e-9*want.usd {
			t.Errorf("%s: %v for %v USD, want %v for %v", what, got.Quantity, dollars(got.USD), want.quantity, want.usd)
		}
	}
	if !slices.Equal(s.Unknown, []string{"bigtable_ssd", "egress", "pubsub_retention"}) {
		t.Errorf("unknown prices: %v", s.Unknown)
	}
	use.Bytes = 220e6 * 0.6 * 14400 // more than the rows need
	if got := plan.ShareOf(use, terms, simple, prices).Lines[0].Quantity; math.Abs(got-2*4) > 1e-9 {
		t.Errorf("%v node-hours, want 8", got)
	}
}

// A share is linear, and so days add up to their sum. A busy app alone in a month pays what a bill says of it, but for
// what a bill has besides.
func TestShareIsThatOfABill(t *testing.T) {
	prices := price.List()
	busy := small
	busy.EventsPerDay, busy.ReadsPerSecond, busy.EventsPerRequest = 1e9, 20_000, 4
	month := plan.Use{Events: busy.EventsPerDay * plan.MonthDays, Reads: busy.ReadsPerSecond * 86400 * plan.MonthDays}
	terms := plan.Terms{EventsPerRequest: 4, RetentionDays: busy.RetentionDays, Clusters: 1}
	bill, share := plan.Compute(busy, plan.Now, prices, plan.Push), plan.ShareOf(month, terms, plan.Now, prices)
	same := 0
	for _, line := range share.Lines {
		i := slices.IndexFunc(bill.Lines, func(l plan.Line) bool { return l.What == line.What })
		if i < 0 {
			continue
		}
		if same++; math.Abs(bill.Lines[i].Quantity/line.Quantity-1) > 1e-9 {
			t.Errorf("%s: %v, and %v in the bill", line.What, line.Quantity, bill.Lines[i].Quantity)
		}
	}
	if same < 9 {
		t.Errorf("%d lines are those of a bill", same)
	}
	half := month
	half.Events, half.Reads = half.Events/2, half.Reads/2
	if got := 2 * plan.ShareOf(half, terms, plan.Now, prices).USD; math.Abs(got/share.USD-1) > 1e-9 {
		t.Errorf("twice the half costs %v, want %v", got, share.USD)
	}
	if got := plan.ShareOf(plan.Use{}, terms, plan.Now, prices).USD; got != 0 {
		t.Errorf("no use costs %v", got)
	}
}

func dollars(usd *float64) float64 {
	if usd == nil {
		return math.NaN()
	}
	return *usd
}

// The storage asks for nodes where the load does not, and the other way round.
func TestNodes(t *testing.T) {
	w := small
	w.EventsPerDay, w.RetentionDays, w.Clusters = 864_000, 3650, 2
	b := plan.Compute(w, simple, price.List(), plan.Push)
	// 3,153,600,000 events of 1,100 B are 3,231 GiB, and a node keeps 2,560.
	if b.Needs.Nodes.Total != 2 || math.Abs(b.Needs.Nodes.Storage-1.2620) > 0.001 {
		t.Errorf("nodes %+v, want 2 by the storage", b.Needs.Nodes)
	}
	if got := b.Lines[0].Quantity; got != 2*2*730 {
		t.Errorf("%v node-hours, want those of two clusters", got)
	}
	w = small
	w.ReadsPerSecond, w.Peak = 17_000, 3
	if n := plan.Compute(w, simple, price.List(), plan.Push).Needs.Nodes; n.Total != 6 {
		t.Errorf("nodes %+v, want 6: 17,000 rows a second, three times at the peak, at 60 %% of a node", n)
	}
}

// A history that fits the user's row costs a recompute one row in place of two.
func TestRecomputeReadsOneRowOfAnInlineHistory(t *testing.T) {
	w, f := small, simple
	w.Users, w.EventsPerDay, f.BlockBytes, f.UserBytes = 1_000_000, 700_000, 10, 100 // 7 events a user
	apart := plan.Compute(w, f, price.List(), plan.Push).Needs.Recompute.NodeSeconds
	f.InlineEvents = 64
	inline := plan.Compute(w, f, price.List(), plan.Push).Needs.Recompute.NodeSeconds
	if want := 1e6 / 17000; math.Abs(apart-inline-want) > 1e-6 {
		t.Errorf("an inline history saves %v node-seconds, want %v", apart-inline, want)
	}
}

// More of anything costs at least as much.
func TestMoreIsNotCheaper(t *testing.T) {
	prices := price.List()
	for i := range prices {
		if prices[i].USD == nil {
			one := 1.0
			prices[i].USD = &one
		}
	}
	base := plan.Compute(small, plan.Now, prices, plan.Push).Sum
	for name, more := range map[string]func(*plan.Workload){
		"events":    func(w *plan.Workload) { w.EventsPerDay *= 10 },
		"users":     func(w *plan.Workload) { w.Users *= 1000 },
		"retention": func(w *plan.Workload) { w.RetentionDays *= 100 },
		"reads":     func(w *plan.Workload) { w.ReadsPerSecond *= 10 },
		"peak":      func(w *plan.Workload) { w.Peak *= 500 },
		"clusters":  func(w *plan.Workload) { w.Clusters++ },
		"customers": func(w *plan.Workload) { w.Customers += 5 },
	} {
		w := small
		more(&w)
		if got := plan.Compute(w, plan.Now, prices, plan.Push).Sum; !(got > base) {
			t.Errorf("more %s cost %v, less than %v", name, got, base)
		}
	}
	w := small
	w.Compression = 3
	if got := plan.Compute(w, plan.Now, prices, plan.Push).Sum; !(got < base) {
		t.Errorf("compressed rows cost %v, not less than %v", got, base)
	}
}

func TestWrongWorkloadsAreSaidInWords(t *testing.T) {
	if err := small.Check(); err != nil {
		t.Fatal(err)
	}
	for want, wrong := range map[string]func(*plan.Workload){
		"--events-per-day 0: must be a number from 1":         func(w *plan.Workload) { w.EventsPerDay = 0 },
		"--events-per-day NaN: must":                          func(w *plan.Workload) { w.EventsPerDay = math.NaN() },
		"--users 1.5: must be a whole number":                 func(w *plan.Workload) { w.Users = 1.5 },
		"--users 9000000: more than the 8640000 events":       func(w *plan.Workload) { w.Users = 9_000_000 },
		"--retention -1: must be a whole number from 1":       func(w *plan.Workload) { w.RetentionDays = -1 },
		"--reads-per-second +Inf: must":                       func(w *plan.Workload) { w.ReadsPerSecond = math.Inf(1) },
		"--peak 0.5: must be a number from 1 to 1000":         func(w *plan.Workload) { w.Peak = 0.5 },
		"--clusters 9: must be a whole number from 1 to 8":    func(w *plan.Workload) { w.Clusters = 9 },
		"--events-per-request 1001: must be a number from 1 ": func(w *plan.Workload) { w.EventsPerRequest = 1001 },
	} {
		w := small
		wrong(&w)
		if err := w.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f := plan.Now
	if f.RequestLogs = 10; f.Check() == nil {
		t.Error("a share of 10 is accepted")
	}
}

// A preview and a bill go by the same price and figures of a recompute.
func TestPreviewsCostAsPlansDo(t *testing.T) {
	second, known := price.List().USD("run_cpu")
	if !known {
		t.Fatal("the price of run_cpu, by which previews go, is unknown")
	}
	w := plan.Workload{Users: 5e6, EventsPerDay: 5e6 * 30, RetentionDays: 1}
	cost := preview.Extrapolate(5e6, 20, 600)
	if want := w.Recompute(plan.Now).CoreSeconds; math.Abs(cost.CPUSeconds-want) > 1e-3 || cost.Users != 5e6 || cost.Events != 150e6 ||
		math.Abs(cost.USD-want*second) > 1e-6 {
		t.Errorf("a preview says %+v, a plan %v s", cost, want)
	}
}

// Every price says where and when it was read, and some bill uses it.
func TestPricesHaveSources(t *testing.T) {
	used, all := map[string]bool{}, small
	all.WarehouseDays = 400
	all.Kept.Warm = []plan.Warm{{Function: "rank", Instances: 1, VCPU: 1, GiB: 1}}
	for _, d := range []plan.Delivery{plan.Push, plan.Pull, plan.Instances} {
		for _, line := range plan.Compute(all, plan.Now, price.List(), d).Lines {
			used[line.Price] = true
		}
	}
	for _, line := range plan.ComputeMachine(all, plan.Now, price.List()).Lines {
		used[line.Price] = true
	}
	for _, p := range price.List() {
		if !used[p.Name] || p.Unit == "" || p.Region == "" || !strings.HasPrefix(p.Page, "https://cloud.google.com/") || len(p.Date) != len("2026-11-22") {
			t.Errorf("%+v lacks something, or no bill uses it", p)
		}
		if p.USD == nil && p.Note == "" {
			t.Errorf("%s is unknown without a reason", p.Name)
		}
	}
}

// Every figure of this version says how and when it was measured, and the bill uses it.
func TestFiguresHaveSources(t *testing.T) {
	used := []float64{
		plan.Now.RowBytes, plan.Now.BlockBytes, plan.Now.MessageCPU, plan.Now.RequestCPU, plan.Now.EventCPU, plan.Now.ReadCPU,
		plan.Now.RecomputeUserCPU, plan.Now.RecomputeEventCPU, plan.Now.LineBytes,
	}
	all := plan.Measurements()
	if len(all) != reflect.TypeOf(plan.Measured).NumField() || len(all) != len(used) {
		t.Fatalf("%d measurements are listed, and %d used", len(all), len(used))
	}
	for i, m := range all {
		if _, err := time.Parse(time.DateOnly, m.Date); err != nil || m.Value <= 0 || m.Value != used[i] || m.Of == "" || m.Command == "" || m.Take == "" {
			t.Errorf("%+v lacks something, or Now has %v", m, used[i])
		}
	}
}

func TestWrongPricesAreSaidInWords(t *testing.T) {
	for _, test := range [][2]string{
		{"bigtable_nodes", "must be NAME=USD"},
		{"nodes=1", `there is no price "nodes"; prices are alert_conditions, armor_policies`},
		{"bigtable_nodes=-1", `"-1" must be dollars, 0 or more`},
		{"bigtable_nodes=inf", "must be dollars"},
		{"bigtable_nodes=NaN", "must be dollars"},
		{"bigtable_nodes=", "must be dollars"},
	} {
		if err := price.List().Set(test[0]); err == nil || !strings.Contains(err.Error(), test[1]) {
			t.Errorf("%s: got %v, want %q", test[0], err, test[1])
		}
	}
}
