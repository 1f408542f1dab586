package plan

import (
	"math"

	"github.com/affinityengine/affinity/shared/judge/price"
)

// Use is what an app used in some time, as the engine counts it.
type Use struct {
	Events, Reads float64
	// Rows of Bigtable that were written or read, and their bytes.
	Rows, Bytes float64
}

// Terms are what the counts do not say.
type Terms struct {
	EventsPerRequest float64 `json:"eventsPerRequest"`
	RetentionDays    float64 `json:"retentionDays"` // for which the events are kept
	Clusters         float64 `json:"clusters"`      // copies of all data
}

// Share is an estimate of what the use of an app costs: its part of what all apps share, as
// long as nothing idles. See LeftOut.
type Share struct {
	// USD is the sum of the lines whose price is known, and Unknown names the other prices.
	USD     float64  `json:"usd"`
	Unknown []string `json:"unknown"`
	Lines   []Line   `json:"lines"`
}

// LeftOut says what a Share is and what it leaves out.
const LeftOut = "An estimate, by list prices: what the counted events, reads, rows and bytes take of nodes and instances " +
	"that all apps share. A node is taken to write 14,000 rows or to move 220 MB a second, and to be 60 % busy. Left " +
	"out are nodes and instances that idle, peaks, users' rows, the CPU of jobs, whatever has a fixed price, free " +
	"allotments, discounts, backups and taxes. The bill of a deployment is `affinity plan`'s."

// ShareOf returns what some use costs. The arithmetic is that of a month's bill, of the lines
// that grow with use.
func ShareOf(u Use, t Terms, f Figures, p price.Prices) Share {
	s := Share{Unknown: []string{}}
	b := Bill{Figures: f, Workload: Workload{
		EventsPerDay: u.Events / MonthDays, ReadsPerSecond: u.Reads / monthSeconds, EventsPerRequest: t.EventsPerRequest,
		RetentionDays: t.RetentionDays, Clusters: t.Clusters, Compression: 1,
	}}
	add := func(what string, quantity float64, price string) {
		line := Line{What: what, Quantity: quantity, Price: price}
		if usd, known := p.USD(price); known {
			cost := quantity * usd
			line.USD = &cost
			s.USD += cost
		} else if len(s.Unknown) == 0 || s.Unknown[len(s.Unknown)-1] != price {
			s.Unknown = append(s.Unknown, price)
		}
		s.Lines = append(s.Lines, line)
	}
	messages := u.Events / t.EventsPerRequest
	message, read := messages*f.MessageCPU+u.Events*f.EventCPU, u.Reads*f.ReadCPU
	b.Needs.Messages, b.Needs.Requests = messages, 2*messages+u.Reads
	b.Needs.LogGiB, b.Needs.HistoryGiB, _ = b.Workload.storage(f)

	add("Bigtable's nodes, by rows or bytes", math.Max(u.Rows/nodeWrites, u.Bytes/nodeScan)/cpuTarget/3600*t.Clusters,
		"bigtable_nodes")
	add("the events' storage until they expire", (b.Needs.LogGiB+b.Needs.HistoryGiB)*t.Clusters, "bigtable_ssd")
	add("CPU of ingest, profiles and process", (message+read)/busy, "run_cpu")
	add("their memory", (message*(ingestShare*ingestMemory+(1-ingestShare)*processMemory)+read*profilesMemory)/busy,
		"run_memory")
	add("requests and pushes", b.Needs.Requests/1e6, "run_requests")
	b.moved(add)
	b.logs(add)
	return s
}
