// Package plan estimates what a deployment of the engine needs and costs in a month:
// Bigtable nodes, storage, messages, tasks, CPU, requests and money.
//
// The model is arithmetic on measured figures of the engine (Figures) and Google's
// prices (package price). functions/docs/operate/costs.md is written from it. It leaves out free
// allotments, discounts, backups and taxes, and warm instances unless a workload has them. The package keeps no data.
package plan

import (
	"fmt"
	"math"
)

// Workload is what clients do, and how long the engine keeps it.
type Workload struct {
	EventsPerDay     float64 `json:"eventsPerDay"`
	Users            float64 `json:"users"` // with an event in the retention
	RetentionDays    float64 `json:"retentionDays"`
	EventsPerRequest float64 `json:"eventsPerRequest"` // all of one user
	ReadsPerSecond   float64 `json:"readsPerSecond"`   // of stored profiles, on average
	// Peak is the busiest minute's load as a multiple of the average one.
	Peak float64 `json:"peak"`
	// Clusters are copies of all data, each with nodes for all writes.
	Clusters float64 `json:"clusters"`
	// Customers have a host and an app each, beside the default host.
	Customers float64 `json:"customers"`
	// Compression is by what factor Bigtable compresses rows on disk. 1: not at all.
	Compression float64 `json:"compression"`
	// Kept is what the deployment keeps whether the load needs it or not.
	Kept Kept `json:"kept,omitzero"`
	// PackWindowMs is for how many milliseconds a request may wait for others of its app, to share a message with
	// them: pack_window_ms of Terraform. 0: each request is a message of its own.
	PackWindowMs float64 `json:"packWindowMs"`
	// NodeGiB is how much a node of Bigtable stores before there is another one: storage_target_gib of Terraform.
	NodeGiB float64 `json:"nodeGiB"`
	// WarehouseDays are the days for which BigQuery keeps a row of each event for analysts. 0: there is no warehouse.
	WarehouseDays float64 `json:"warehouseDays,omitempty"`
}

// Check returns what is wrong with a workload, in words, or nil.
func (w Workload) Check() error {
	err := Terms{w.EventsPerRequest, w.RetentionDays, w.Clusters}.Check()
	if err != nil {
		return err
	}
	err = check([]bounded{
		{"events-per-day", w.EventsPerDay, 1, 1e12, false},
		{"users", w.Users, 1, 1e12, true},
		{"reads-per-second", w.ReadsPerSecond, 0, 1e9, false},
		{"peak", w.Peak, 1, 1000, false},
		{"customers", w.Customers, 0, 100000, true},
		{"compression", w.Compression, 1, 20, false},
		{"pack-window-ms", w.PackWindowMs, 0, 500, false},
		{"storage-target-gib", w.NodeGiB, 2560, 5120, true},
		{"warehouse-days", w.WarehouseDays, 0, 36500, true},
	})
	if err != nil {
		return err
	}
	if kept := w.EventsPerDay * w.RetentionDays; w.Users > kept {
		return fmt.Errorf("--users %.0f: more than the %.0f events that are kept, but each user has at least one",
			w.Users, kept)
	}
	return nil
}

// Check returns what is wrong with terms, in words, or nil.
func (t Terms) Check() error {
	return check([]bounded{
		{"retention", t.RetentionDays, 1, 36500, true},
		{"events-per-request", t.EventsPerRequest, 1, 1000, false},
		{"clusters", t.Clusters, 1, 8, true},
	})
}

// bounded is a number that a flag gives.
type bounded struct {
	name           string
	value, low, up float64
	whole          bool
}

func check(numbers []bounded) error {
	for _, n := range numbers {
		kind := "a number"
		if n.whole {
			kind = "a whole number"
		}
		if !(n.value >= n.low && n.value <= n.up) || n.whole && n.value != math.Trunc(n.value) {
			return fmt.Errorf("--%s %v: must be %s from %.0f to %.0f", n.name, n.value, kind, n.low, n.up)
		}
	}
	return nil
}

// Delivery is how messages reach process, and how Cloud Run bills the functions that
// clients and messages reach.
type Delivery int

const (
	// Push is the deployment: Pub/Sub pushes, and Cloud Run bills requests.
	Push Delivery = iota
	// Pull is a worker pool in place of process, which pulls messages.
	Pull
	// Instances is Push to instances that are billed while they exist, at no charge for
	// requests.
	Instances
	// Cheapest is Push, to each function with the billing that costs less.
	Cheapest
)

// Nodes are Bigtable's nodes of a cluster.
type Nodes struct {
	Load    float64 `json:"load"`    // how many the load needs at its peak
	Storage float64 `json:"storage"` // how many the storage needs
	Total   float64 `json:"total"`   // the larger one, in whole nodes
}

// Needs are what a month takes.
type Needs struct {
	EventsKept    float64 `json:"eventsKept"`
	EventsPerUser float64 `json:"eventsPerUser"`
	Messages      float64 `json:"messages"` // published in a month
	Tasks         float64 `json:"tasks"`    // of the nightly rounds
	Requests      float64 `json:"requests"` // that Cloud Run serves
	VCPU          float64 `json:"vCPU"`     // billed, on average
	LogGiB        float64 `json:"logGiB"`   // rows of the event log, of one cluster
	HistoryGiB    float64 `json:"historyGiB"`
	UsersGiB      float64 `json:"usersGiB"`
	LoggedGiB     float64 `json:"loggedGiB"` // entries of Cloud Logging
	Nodes         Nodes   `json:"nodes"`
	// Recompute is what all profiles take after a change of the strategy.
	Recompute Recompute `json:"recompute"`
}

// Recompute is the work of one recompute of all users.
type Recompute struct {
	NodeSeconds float64 `json:"nodeSeconds"`
	CoreSeconds float64 `json:"coreSeconds"`
}

// rates are numbers a second, on average.
type rates struct{ events, requests, messages, reads float64 }

// rates returns the rates of a workload. A request waits for others of its app in the same instance of ingest. The
// first one of a quiet app opens a window and does not wait. Each window with requests gives a message and opens the
// next one, and one without ends them. So, for requests that arrive independently, x of them on average in a window, a
// message has x + exp(-x), if that many fit. The apps, one a customer and one more, have equal parts of the requests.
func (w Workload) rates(f Figures) rates {
	events := w.EventsPerDay / 86400
	requests := events / w.EventsPerRequest
	x := requests / (1 + w.Customers) / always(requests, w.ingestCPU(f)) * w.PackWindowMs / 1000
	packed := math.Max(1, math.Min(x+math.Exp(-x), packEvents/w.EventsPerRequest))
	return rates{events, requests, requests / packed, w.ReadsPerSecond}
}

// ingestCPU returns the CPU of a request in ingest.
func (w Workload) ingestCPU(f Figures) float64 {
	return ingestShare * (f.MessageCPU + w.EventsPerRequest*f.EventCPU)
}

// processCPU returns the CPU of a second's messages in process.
func (w Workload) processCPU(r rates, f Figures) float64 {
	all := r.messages*f.MessageCPU + (r.requests-r.messages)*f.RequestCPU + r.events*f.EventCPU
	return all - r.requests*w.ingestCPU(f)
}

// storage returns the GiB of the log, of histories and of user rows, of one cluster.
func (w Workload) storage(f Figures) (log, histories, users float64) {
	kept := w.EventsPerDay * w.RetentionDays
	size := gib * w.Compression
	return kept * f.RowBytes / size, kept * f.BlockBytes / size, w.Users * f.UserBytes / size
}

// nodes returns the nodes of a cluster.
func (w Workload) nodes(f Figures) Nodes {
	r := w.rates(f)
	// A ticket reads and writes the row of the request's user. A refresh writes the profile.
	reads := r.reads + r.requests*(1+f.RefreshRows)
	writes := r.events + r.requests*2
	load := w.Peak * (reads/nodeReads + writes/nodeWrites) / cpuTarget
	log, histories, users := w.storage(f)
	stored := (log + histories + users) / w.NodeGiB
	return Nodes{load, stored, math.Max(1, math.Ceil(math.Max(load, stored)))}
}

// Recompute returns the work of a recompute of all users. Each user is a row, or two if the history
// has rows of its own, and a profile is written.
func (w Workload) Recompute(f Figures) Recompute {
	kept := w.EventsPerDay * w.RetentionDays
	rows := w.Users
	if kept/w.Users > f.InlineEvents {
		rows += w.Users
	}
	scan := (kept*f.BlockBytes + w.Users*f.UserBytes) / nodeScan
	return Recompute{
		NodeSeconds: math.Max(rows/nodeReads, scan) + w.Users/nodeWrites,
		CoreSeconds: w.Users*f.RecomputeUserCPU + kept*f.RecomputeEventCPU,
	}
}

// instances returns how many instances of a function are billed on average: one while
// it serves anything, and more as CPU asks for them.
func instances(perSecond, cpu float64) float64 {
	return math.Max(1-math.Exp(-perSecond*billedStep), perSecond*cpu/busy)
}

// always is instances of those that exist all the time.
func always(perSecond, cpu float64) float64 { return math.Max(1, perSecond*cpu/busy) }
