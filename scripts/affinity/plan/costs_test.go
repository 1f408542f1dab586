package plan_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/plan"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/judge/price"
)

var rewrite = flag.Bool("rewrite", false, "write the tables of functions/docs/operate/costs.md")

const costsFile = "../../../functions/docs/operate/costs.md"

// The workloads of functions/docs/operate/costs.md.
var (
	shop   = plan.Workload{EventsPerDay: 1e6, Users: 100_000, RetentionDays: 90, EventsPerRequest: 4, ReadsPerSecond: 12, Peak: 3, Clusters: 1, Compression: 1, PackWindowMs: 5, NodeGiB: plan.NodeGiB}
	market = plan.Workload{EventsPerDay: 1e8, Users: 1e7, RetentionDays: 90, EventsPerRequest: 4, ReadsPerSecond: 500, Peak: 3, Clusters: 1, Compression: 1, PackWindowMs: 5, NodeGiB: plan.NodeGiB}
)

// TestCostsPage compares the tables of functions/docs/operate/costs.md with the model. -rewrite writes
// them.
func TestCostsPage(t *testing.T) {
	page, err := os.ReadFile(costsFile)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for name, table := range map[string]string{"prices": pricesTable(), "figures": figuresTable(), "bills": billsTable(t), "delivery": deliveryTable(t), "billing": billingTable(t), "levers": leversTable(t), "log": logTable(t), "machines": machinesTable(t), "windows": windowsTable(t), "regions": regionsTable(t)} {
		part := regexp.MustCompile(`(?s)(<!-- ` + name + `: written by a test -->\n).*?(<!-- end -->)`)
		if !part.MatchString(text) {
			t.Fatalf("functions/docs/operate/costs.md has no part %s", name)
		}
		text = part.ReplaceAllStringFunc(text, func(old string) string {
			m := part.FindStringSubmatch(old)
			return m[1] + "\n" + table + "\n" + m[2]
		})
	}
	if text == string(page) {
		return
	}
	if !*rewrite {
		t.Fatal("the tables of functions/docs/operate/costs.md are not those of the model: go test ./scripts/affinity/plan -run TestCostsPage -rewrite")
	}
	if err := os.WriteFile(costsFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func pricesTable() string {
	var b strings.Builder
	b.WriteString("| name | USD | for | region | page | date | note |\n|---|---|---|---|---|---|---|\n")
	for _, p := range price.List() {
		usd := "unknown"
		if p.USD != nil {
			usd = strconv.FormatFloat(*p.USD, 'f', -1, 64)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", p.Name, usd, p.Unit, p.Region, p.Page, p.Date, p.Note)
	}
	return b.String()
}

func figuresTable() string {
	var b strings.Builder
	b.WriteString("| of | value | command | of its output | date |\n|---|---|---|---|---|\n")
	for _, m := range plan.Measurements() {
		value := fmt.Sprintf("%g B", m.Value)
		if m.CPU {
			value = fmt.Sprintf("%.4g µs of CPU", 1e6*m.Value)
		}
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s | %s |\n", m.Of, value, m.Command, m.Take, m.Date)
	}
	return b.String()
}

// remembered are the prices of the page's tables: the list and two that nobody could
// read.
func remembered(t *testing.T) price.Prices {
	t.Helper()
	prices := price.List()
	for _, price := range []string{"bigtable_nodes=0.65", "bigtable_ssd=0.17"} {
		if err := prices.Set(price); err != nil {
			t.Fatal(err)
		}
	}
	return prices
}

func billsTable(t *testing.T) string {
	prices := remembered(t)
	var bills []plan.Bill
	for _, w := range []plan.Workload{shop, market} {
		bills = append(bills, plan.Compute(w, plan.Before, prices, plan.Push), plan.Compute(w, plan.Now, prices, plan.Push))
	}
	var b strings.Builder
	b.WriteString("| what | price | 1M a day, before | now | 100M a day, before | now |\n|---|---|---|---|---|---|\n")
	for i, line := range bills[0].Lines {
		if line.USD == nil {
			continue
		}
		fmt.Fprintf(&b, "| %s | `%s` |", line.What, line.Price)
		for _, bill := range bills {
			fmt.Fprintf(&b, " %s |", render.Dollars(bill.Lines[i].USD))
		}
		b.WriteByte('\n')
	}
	b.WriteString("| **sum of what has a price** | |")
	for _, bill := range bills {
		fmt.Fprintf(&b, " **%s** |", render.Dollars(&bill.Sum))
	}
	fmt.Fprintf(&b, "\n\n| without a price | unit | 1M a day | 100M a day |\n|---|---|---|---|\n")
	for i, line := range bills[1].Lines {
		if line.USD == nil {
			unknown := plan.Unknown(bills[1].Lines, prices)
			at := slices.IndexFunc(unknown, func(p price.Price) bool { return p.Name == line.Price })
			fmt.Fprintf(&b, "| %s | %s, `%s` | %s | %s |\n", line.What, unknown[at].Unit, line.Price, render.Quantity(line.Quantity), render.Quantity(bills[3].Lines[i].Quantity))
		}
	}
	return b.String()
}

func deliveryTable(t *testing.T) string {
	prices := remembered(t)
	var b strings.Builder
	b.WriteString("| delivery | 1M a day: vCPU, requests | Cloud Run, USD | 100M a day: vCPU, requests | Cloud Run, USD |\n|---|---|---|---|---|\n")
	for d, name := range []string{"push, as deployed", "pull by a worker pool in place of process", "push to instances that are billed while they exist", "push, to each function with the billing that costs less"} {
		fmt.Fprintf(&b, "| %s |", name)
		for _, w := range []plan.Workload{shop, market} {
			bill := plan.Compute(w, plan.Now, prices, plan.Delivery(d))
			var run float64
			for _, line := range bill.Lines {
				if strings.HasPrefix(line.Price, "run_") && !strings.HasSuffix(line.What, "night") {
					run += *line.USD
				}
			}
			fmt.Fprintf(&b, " %s, %s | %s |", render.Quantity(bill.Needs.VCPU), render.Quantity(bill.Needs.Requests), render.Dollars(&run))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// billingTable says what each function costs by requests and by instances.
func billingTable(t *testing.T) string {
	prices := remembered(t)
	var b strings.Builder
	b.WriteString("| function | 1M a day: requests a second | by requests, USD | by instances, USD | 100M a day: requests a second | by requests, USD | by instances, USD |\n|---|---|---|---|---|---|---|\n")
	little, much := plan.Compute(shop, plan.Now, prices, plan.Push), plan.Compute(market, plan.Now, prices, plan.Push)
	for i, fn := range little.Functions {
		fmt.Fprintf(&b, "| %s |", fn.Name)
		for _, fn := range []plan.Function{fn, much.Functions[i]} {
			fmt.Fprintf(&b, " %s | %s | %s |", render.Quantity(fn.PerSecond()), render.Dollars(fn.ByRequests), render.Dollars(fn.ByInstances))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// leversTable says what each setting saves a marketplace: alone, and after those above it.
func leversTable(t *testing.T) string {
	prices := remembered(t)
	type setup struct {
		w plan.Workload
		f plan.Figures
		d plan.Delivery
	}
	base := setup{market, plan.Now, plan.Push}
	sum := func(s setup) float64 { return plan.Compute(s.w, s.f, prices, s.d).Sum }
	all, before := base, sum(base)
	var b strings.Builder
	b.WriteString("| setting | alone, USD | after those above, USD | sum, USD | price of it |\n|---|---|---|---|---|\n")
	fmt.Fprintf(&b, "| the defaults | | | %.2f | |\n", before)
	for _, lever := range []struct {
		name, price string
		set         func(*setup)
	}{
		{"`billing = \"instances\"` of ingest, profiles and process", "an instance is billed for some minutes after its last request", func(s *setup) { s.d = plan.Cheapest }},
		{"`storage_target_gib = 3072`", "two nodes in place of three; each caches less of its data", func(s *setup) { s.w.NodeGiB = 3072 }},
		{"`balancer_log_sample = 0.01`", "one request in a hundred shows its client's address", func(s *setup) { s.f.BalancerLogs = 0.01 }},
		{"`message_log_sample = 0.01`", "one line in a hundred says that an app's events have arrived; metrics count all", func(s *setup) { s.f.MessageLogs = 0.01 }},
		{"`pack_window_ms = 50`", "answers and freshness up to 50 ms later", func(s *setup) { s.w.PackWindowMs = 50 }},
	} {
		alone := base
		lever.set(&alone)
		lever.set(&all)
		now := sum(all)
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.2f | %s |\n", lever.name, sum(alone)-sum(base), now-before, now, lever.price)
		before = now
	}
	return b.String()
}

// TestLeversReachTheirAim holds what the page promises of a marketplace's bill.
func TestLeversReachTheirAim(t *testing.T) {
	w := market
	w.NodeGiB = 3072
	if got := plan.Compute(w, plan.Now, remembered(t), plan.Cheapest).Sum; got >= 2500 {
		t.Errorf("billing and storage target leave a bill of %.2f", got)
	}
}

// windowsTable says what a window saves.
func windowsTable(t *testing.T) string {
	prices := remembered(t)
	var b strings.Builder
	b.WriteString("| `pack_window_ms` | 1M a day: requests in a message | sum, USD | 100M a day: requests in a message | Cloud Run, USD | lines of process, USD | sum, USD |\n|---|---|---|---|---|---|---|\n")
	for _, window := range []float64{0, 5, 20, 50, 200} {
		fmt.Fprintf(&b, "| %g |", window)
		for i, w := range []plan.Workload{shop, market} {
			w.PackWindowMs = window
			bill := plan.Compute(w, plan.Now, prices, plan.Push)
			fmt.Fprintf(&b, " %.2f |", w.EventsPerDay/w.EventsPerRequest*plan.MonthDays/bill.Needs.Messages)
			if i == 1 {
				run, lines := 0.0, 0.0
				for _, line := range bill.Lines {
					if strings.HasPrefix(line.Price, "run_") && !strings.HasSuffix(line.What, "night") {
						run += *line.USD
					} else if strings.HasPrefix(line.What, "lines of process") {
						lines = *line.USD
					}
				}
				fmt.Fprintf(&b, " %.2f | %.2f |", run, lines)
			}
			fmt.Fprintf(&b, " %.2f |", bill.Sum)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// regionsTable compares one region with two that share its apps. The load balancer and the
// nightly schedules are those of one.
func regionsTable(t *testing.T) string {
	prices := remembered(t)
	var b strings.Builder
	b.WriteString("| workload | one region: nodes, USD | a second region, half of the apps in each: nodes, USD | more |\n|---|---|---|---|\n")
	for _, w := range []plan.Workload{shop, market} {
		one, half := plan.Compute(w, plan.Now, prices, plan.Push), w
		half.EventsPerDay, half.Users, half.ReadsPerSecond = w.EventsPerDay/2, w.Users/2, w.ReadsPerSecond/2
		each := plan.Compute(half, plan.Now, prices, plan.Push)
		two := 2 * each.Sum
		for _, line := range each.Lines {
			if line.Price == "lb_rules" || line.Price == "scheduler_jobs" {
				two -= *line.USD
			}
		}
		fmt.Fprintf(&b, "| %s events a day | %s, %.2f | %s, %.2f | %.0f %% |\n", render.Quantity(w.EventsPerDay),
			render.Quantity(one.Needs.Nodes.Total), one.Sum, render.Quantity(2*each.Needs.Nodes.Total), two, 100*(two/one.Sum-1))
	}
	return b.String()
}

// machinesTable compares one machine with the deployment, for shops like the first workload and smaller and larger ones.
func machinesTable(t *testing.T) string {
	prices := remembered(t)
	var b strings.Builder
	b.WriteString("| events a day | one machine | its disk, GiB | cores in the busiest minute | USD | the deployment, USD |\n|---|---|---|---|---|---|\n")
	for _, events := range []float64{20_000, 1e5, 1e6, 1e7, 5e7, 1e8} {
		w := shop
		share := events / w.EventsPerDay
		w.EventsPerDay, w.Users, w.ReadsPerSecond = events, w.Users*share, w.ReadsPerSecond*share
		m, deployed := plan.ComputeMachine(w, plan.Now, prices), plan.Compute(w, plan.Now, prices, plan.Push)
		name, disk, usd := m.Type, render.Quantity(m.DiskGiB), render.Dollars(&m.Sum)
		if name == "" {
			name, disk, usd = "none", "", ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %.2f |\n", render.Quantity(events), name, disk, render.Quantity(m.Cores), usd, deployed.Sum)
	}
	fmt.Fprintf(&b, "\nThey cross where the largest type ends: at %s events a day.\n", render.Quantity(plan.ComputeMachine(shop, plan.Now, prices).UpTo))
	return b.String()
}

// logTable says what the log costs, by leaving out all of its rows but those of a week.
func logTable(t *testing.T) string {
	prices := remembered(t)
	var b strings.Builder
	b.WriteString("| workload | GiB of the log, of all | its storage, USD | nodes for it, USD | share of the sum | the same with a week of the log, USD |\n|---|---|---|---|---|---|\n")
	for _, w := range []plan.Workload{shop, market} {
		whole := plan.Compute(w, plan.Now, prices, plan.Push)
		share := 7 / w.RetentionDays
		week := plan.Now
		week.RowBytes *= share
		cut := plan.Compute(w, week, prices, plan.Push)
		week.RowBytes = 0
		none := plan.Compute(w, week, prices, plan.Push)
		nodes, rows := *whole.Lines[0].USD-*none.Lines[0].USD, *whole.Lines[1].USD
		fmt.Fprintf(&b, "| %s events a day | %s of %s | %.2f | %.2f | %.0f %% | %.2f |\n", render.Quantity(w.EventsPerDay),
			render.Quantity(whole.Needs.LogGiB), render.Quantity(whole.Needs.LogGiB+whole.Needs.HistoryGiB+whole.Needs.UsersGiB), rows, nodes, 100*(rows+nodes)/whole.Sum, cut.Sum)
	}
	return b.String()
}
