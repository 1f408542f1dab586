package plan

import (
	"math"

	"github.com/affinityengine/affinity/shared/judge/price"
)

// Line is one item of a bill.
type Line struct {
	What     string  `json:"what"`
	Quantity float64 `json:"quantity"` // in the unit of the price
	Price    string  `json:"price"`    // its name
	// USD is nil if the price is unknown.
	USD *float64 `json:"usd"`
}

// Bill is the estimate for a month.
type Bill struct {
	Workload Workload `json:"workload"`
	Figures  Figures  `json:"figures"`
	Needs    Needs    `json:"needs"`
	// Functions are those that clients and messages reach, with what Cloud Run asks for each.
	Functions []Function `json:"functions"`
	Lines     []Line     `json:"lines"`
	// Sum is that of the lines with a price, in USD. Total is the same, nil while the price of
	// the main item is unknown: nobody should take the rest for the cost.
	Sum   float64  `json:"-"`
	Total *float64 `json:"sum"`
}

// mainItem is the price of the largest line of every bill.
const mainItem = "bigtable_nodes"

// Compute returns the bill of a workload, which Check accepts.
func Compute(w Workload, f Figures, p price.Prices, d Delivery) Bill {
	b := Bill{Workload: w, Figures: f}
	add := adding(&b.Lines, &b.Sum, p)
	b.needs()
	b.storage(add)
	b.compute(add, d, p)
	add("two forwarding rules", 730, "lb_rules")
	b.moved(add)
	b.logs(add)
	b.warehouse(add)
	b.rest(add)
	if _, known := p.USD(mainItem); known {
		b.Total = &b.Sum
	}
	return b
}

type adder func(what string, quantity float64, price string)

// adding returns what adds lines to those of a bill, and the costs that are known to its sum.
func adding(lines *[]Line, sum *float64, p price.Prices) adder {
	return func(what string, quantity float64, price string) {
		line := Line{What: what, Quantity: quantity, Price: price}
		if usd := p.Find(price).USD; usd != nil {
			cost := math.Round(100*quantity**usd) / 100
			line.USD = &cost
			*sum = math.Round(100*(*sum+cost)) / 100
		}
		*lines = append(*lines, line)
	}
}

func (b *Bill) needs() {
	w, n := b.Workload, &b.Needs
	n.EventsKept = w.EventsPerDay * w.RetentionDays
	n.EventsPerUser = n.EventsKept / w.Users
	n.Messages = w.rates(b.Figures).messages * monthSeconds
	n.Tasks = MonthDays * math.Ceil(w.Users/shardUsers)
	n.LogGiB, n.HistoryGiB, n.UsersGiB = w.storage(b.Figures)
	n.Nodes = w.nodes(b.Figures)
	n.Recompute = w.Recompute(b.Figures)
}

func (b *Bill) storage(add adder) {
	w, n := b.Workload, b.Needs
	add("Bigtable's nodes", w.Kept.nodes(n.Nodes.Total, w.Clusters)*730, "bigtable_nodes")
	add("rows of the event log", n.LogGiB*w.Clusters, "bigtable_ssd")
	add("histories", n.HistoryGiB*w.Clusters, "bigtable_ssd")
	add("users' rows", n.UsersGiB*w.Clusters, "bigtable_ssd")
}

// moved adds what messages and requests move.
func (b *Bill) moved(add adder) {
	w, r := b.Workload, b.Workload.rates(b.Figures)
	messages := r.requests * (w.EventsPerRequest*eventBytes + messageBytes) * monthSeconds
	in := r.requests*(w.EventsPerRequest*eventBytes+requestBytes) + r.reads*requestBytes
	out := r.requests*acceptedBytes + r.reads*profileBytes
	add("messages, published and delivered", 2*messages/(1<<40), "pubsub_traffic")
	add("load balancer, in and out", (in+out)*monthSeconds/gib, "lb_traffic")
	add("answers to the internet", out*monthSeconds/gib, "egress")
	add("messages kept for a replay", messages/MonthDays*replayDays/gib, "pubsub_retention")
}

// warehouse adds the rows for analysts, if there are any, without what their queries read.
func (b *Bill) warehouse(add adder) {
	w := b.Workload
	if w.WarehouseDays == 0 {
		return
	}
	month := w.EventsPerDay * MonthDays
	add("rows for analysts, published", month*rowMessage/(1<<40), "pubsub_traffic")
	add("the same, written to BigQuery", month*rowMessage/(1<<40), "pubsub_bigquery")
	table := w.EventsPerDay * w.WarehouseDays * rowStored
	add("their table", table/gib, "bigquery_storage")
	add("deletions of users from it, two a day", 2*MonthDays*table/(1<<40), "bigquery_queries")
}

func (b *Bill) logs(add adder) {
	f := b.Figures
	r := b.Workload.rates(f)
	logged := func(what string, perSecond, share, bytes float64) {
		share += (1 - share) * unhealthy
		n := perSecond * share * bytes * monthSeconds / gib
		b.Needs.LoggedGiB += n
		add(what, n, "logs")
	}
	logged("log entries of requests and pushes", b.Needs.Requests/monthSeconds, f.RequestLogs, requestEntry)
	logged("lines of process, one a message", r.messages, f.MessageLogs, f.LineBytes)
	n := (r.requests + r.reads) * f.BalancerLogs * balancerEntry * monthSeconds / gib
	b.Needs.LoggedGiB += n
	add("log entries of the load balancer, a sample", n, "logs")
}

func (b *Bill) rest(add adder) {
	w, r := b.Workload, b.Workload.rates(b.Figures)
	add("nightly rounds", 1, "scheduler_jobs")
	add("tasks of the nightly rounds", b.Needs.Tasks*taskRequests/1e6, "tasks_operations")
	add("reads of the apps' configuration", b.Needs.VCPU*(1+w.Customers)/configEvery*monthSeconds/1e6, "firestore_reads")
	add("Cloud Armor's policy", 1, "armor_policies")
	add("its rules, one a host and the last one", 2+w.Customers, "armor_rules")
	add("requests that it checks", (r.requests+r.reads)*monthSeconds/1e6, "armor_requests")
	add("certificates, one a host", 1+w.Customers, "certificates")
	add("conditions of alerts", alerts+1+w.Customers, "alert_conditions")
	add("images of the functions", imagesGiB, "images")
}

// Unknown returns the prices that lines need and the list lacks.
func Unknown(lines []Line, p price.Prices) (unknown price.Prices) {
	for _, line := range lines {
		if price := p.Find(line.Price); price.USD == nil && unknown.Find(line.Price) == nil {
			unknown = append(unknown, *price)
		}
	}
	return unknown
}

// Comparison is the bill of this version, and of an earlier one if that is asked for.
type Comparison struct {
	Now    Bill  `json:"now"`
	Before *Bill `json:"before,omitempty"`
	// Machine is one machine in place of the deployment.
	Machine Machine      `json:"machine"`
	Prices  price.Prices `json:"prices"`
}
