package plan

import "fmt"

// Figures are what the engine needs for an event, a message, a read and a user.
type Figures struct {
	// RowBytes is an event's row of the log: key, cells, and the event as it was sent.
	RowBytes float64 `json:"rowBytes"`
	// BlockBytes is an event's part of the user's history.
	BlockBytes float64 `json:"blockBytes"`
	// UserBytes is a user's row: the profile, its summary and session, the manifest.
	UserBytes float64 `json:"userBytes"`
	// InlineEvents is up to how many events of a user are in the user's own row. 0: a
	// history has rows of its own.
	InlineEvents float64 `json:"inlineEvents"`
	// RefreshRows are the rows that a refresh reads besides the user's own: blocks and
	// rows of the log.
	RefreshRows float64 `json:"refreshRows"`
	// MessageCPU is the CPU of a message of one request in ingest and process, RequestCPU what each other
	// request in it adds, EventCPU what each of its events adds, ReadCPU that of a read, in seconds.
	MessageCPU float64 `json:"messageCPU"`
	RequestCPU float64 `json:"requestCPU"`
	EventCPU   float64 `json:"eventCPU"`
	ReadCPU    float64 `json:"readCPU"`
	// RecomputeUserCPU and RecomputeEventCPU are the CPU of a recompute that stores all
	// profiles, in seconds for a user and for an event.
	RecomputeUserCPU  float64 `json:"recomputeUserCPU"`
	RecomputeEventCPU float64 `json:"recomputeEventCPU"`
	// RequestLogs and MessageLogs are the shares of healthy requests and messages whose
	// log entry is kept, and BalancerLogs that of all requests in the load balancer's log; LineBytes is
	// process's line.
	RequestLogs  float64 `json:"requestLogs"`
	MessageLogs  float64 `json:"messageLogs"`
	BalancerLogs float64 `json:"balancerLogs"`
	LineBytes    float64 `json:"lineBytes"`
}

// Before are the figures of the engine of 2026-11-22 before small histories moved into
// the user's row.
//
//   - RowBytes: wide rows with compact values of 12 filters, 438 B; the event as it was
//     sent, 132 B (functions/docs/design/schemas.md); the names of its objects, 38 B
//     (functions/docs/design/decisions.md).
//   - BlockBytes: clickstream data with 7 events a user, without object ids.
//   - UserBytes: assumed.
//   - RefreshRows: a block, the message's own events, and those of the messages before.
//   - MessageCPU and ReadCPU: `affinity load` with one event a request, and with reads
//     alone, against one process that holds the stand-ins of Google's services
//     too. So they are upper bounds.
//   - EventCPU: `affinity import` of 100,000 events.
//   - RecomputeUserCPU: `affinity bench recompute` with 7 events a user, with writes, as
//     if both cores had been busy. RecomputeEventCPU: the same with 500 events a user.
//   - LineBytes: the line, 330 B, and what Logging adds, assumed.
var Before = Figures{
	RowBytes: 608, BlockBytes: 52, UserBytes: 5000, RefreshRows: 5,
	MessageCPU: 1.74e-3, RequestCPU: 1.74e-3, EventCPU: 30e-6, ReadCPU: 0.5e-3,
	RecomputeUserCPU: 74e-6, RecomputeEventCPU: 0.16e-6,
	RequestLogs: 1, MessageLogs: 1, BalancerLogs: 0.1, LineBytes: 500,
}

// Now are the figures of this version: Measured, and
//
//   - UserBytes: assumed.
//   - InlineEvents: a smaller history is a cell of the user's row.
//   - RefreshRows: a new event is added to the stored profile, which is in the user's
//     row.
//   - RequestLogs and BalancerLogs: request_log_sample and balancer_log_sample of Terraform.
var Now = Figures{
	RowBytes: Measured.Row.Value, BlockBytes: Measured.Block.Value, UserBytes: Before.UserBytes, InlineEvents: 64,
	RefreshRows: 0,
	MessageCPU:  Measured.Message.Value, RequestCPU: Measured.Request.Value,
	EventCPU: Measured.Event.Value, ReadCPU: Measured.Read.Value,
	RecomputeUserCPU: Measured.RecomputeUser.Value, RecomputeEventCPU: Measured.RecomputeEvent.Value,
	RequestLogs: 0, MessageLogs: 1, BalancerLogs: 0.1, LineBytes: Measured.Line.Value,
}

// Check returns what is wrong with figures, in words, or nil.
func (f Figures) Check() error {
	for _, n := range []struct {
		name    string
		value   float64
		low, up float64
	}{
		{"row-bytes", f.RowBytes, 1, 1e8},
		{"block-bytes", f.BlockBytes, 0, 1e6},
		{"request-logs", f.RequestLogs, 0, 1},
		{"message-logs", f.MessageLogs, 0, 1},
		{"balancer-logs", f.BalancerLogs, 0, 1},
	} {
		if !(n.value >= n.low && n.value <= n.up) {
			return fmt.Errorf("--%s %v: must be a number from %.0f to %.0f", n.name, n.value, n.low, n.up)
		}
	}
	return nil
}

// NodeGiB is how much a node of Bigtable stores unless storage_target_gib of Terraform says otherwise: half of
// 5 TiB (https://cloud.google.com/bigtable/docs/autoscaling).
const NodeGiB = 2560.0

// What does not depend on the engine's version.
const (
	monthSeconds = 730 * 3600.0
	MonthDays    = monthSeconds / 86400 // of a month as bills have it
	gib          = 1 << 30

	// Bytes of requests: clients send 500 B an event and 500 B more. The message adds
	// the filters of the objects. A profile is 5 kB.
	eventBytes   = 500.0
	requestBytes = 500.0
	packEvents   = 100.0 // that requests publish together: bus.Packer
	messageBytes = 1000.0
	// rowMessage and rowStored are the bytes of a row for analysts, as a message and in BigQuery's table: of an event of
	// eventBytes with 12 filters.
	rowMessage    = 1500.0
	rowStored     = 950.0
	acceptedBytes = 300.0
	profileBytes  = 5000.0

	// Bytes of a log entry, assumed: Cloud Run's of a request, the load balancer's. unhealthy
	// is the share of requests that fail or take more than a second, which Cloud Run always logs.
	requestEntry  = 1000.0
	balancerEntry = 1200.0
	unhealthy     = 0.01

	// Google's figures for a node with SSD, for rows of 1 kB
	// (https://cloud.google.com/bigtable/docs/performance, read 2026-11-22), and the
	// target of autoscaling: cpu_target of terraform/variables.tf.
	nodeReads  = 17000.0
	nodeWrites = 14000.0
	nodeScan   = 220e6
	cpuTarget  = 0.6

	// Cloud Run bills an instance while it serves at least one request, in steps of a
	// tenth of a second, and adds instances above 60 % of CPU. Memory of an instance as
	// in terraform/sizes.tf.
	billedStep     = 0.1
	busy           = 0.6
	ingestMemory   = 0.5
	profilesMemory = 0.5
	processMemory  = 1.0
	workerMemory   = 2.0

	shardUsers   = 5000 // JOB_SHARD_USERS
	taskRequests = 2    // a task is created and delivered
	replayDays   = 1    // replay_days of terraform/variables.tf
	configEvery  = 5.0  // seconds for which functions cache an app's configuration
	alerts       = 40   // conditions of alerts in terraform/modules/monitoring, and one more for each host
	imagesGiB    = 2.0
)
