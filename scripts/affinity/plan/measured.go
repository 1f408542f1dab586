package plan

import "github.com/affinityengine/affinity/shared/judge/preview"

// Measurement is a figure of the engine as it was measured.
type Measurement struct {
	Value   float64
	CPU     bool   // Value is in seconds of CPU, else in bytes
	Of      string // what Value is of, with its density
	Command string
	Take    string // what of the command's output is the value
	Date    string
}

// Measured are the measurements of this version, and the only place that has them, but for
// those of a recompute, which previews use too: Now and the table of functions/docs/operate/costs.md follow.
// To replace one, run its command on an idle machine, change value and date here, and run
// go test ./scripts/affinity/plan -run TestCostsPage -rewrite.
//
// The CPU of a message and of a read is that of a process that also holds the stand-ins of
// Google's services, so both are upper bounds. That of a recompute is the client's.
var Measured = struct {
	Row, Block, Message, Request, Event, Read, RecomputeUser, RecomputeEvent, Line Measurement
}{
	Row: Measurement{
		Value: 608, Of: "the log's row of an event with 12 filters",
		Command: "affinity bench schemas --scenarios shape --counts 10000 --repeat 1",
		Take:    "stored of wide-compact, 438; the event as it was sent, 132; its objects, 38", Date: "2026-11-21",
	},
	Block: Measurement{
		Value: 14.2, Of: "an event in a block, 6.9 events a user, without object ids",
		Command: "go test ./shared/score/history -run BytesOfRealData -v",
		Take:    "clickstream, with a dictionary", Date: "2026-11-22",
	},
	Message: Measurement{
		Value: 1.74e-3, CPU: true, Of: "a message of one event, in ingest and process",
		Command: "affinity load --rate 500 --reads 0 --for 30s",
		Take:    "CPU of `affinity up` in that time, by event", Date: "2026-11-22",
	},
	Request: Measurement{
		Value: 0.6e-3, CPU: true, Of: "each other request of one event in a message",
		Command: "affinity up --pack-window 50ms; affinity load --rate 500 --reads 0 --for 30s",
		Take: "CPU of `affinity up` in that time, by event, at 25 requests a message; 1,674 µs at 1.1, 970 at 3.2, " +
			"725 at 11", Date: "2026-11-29",
	},
	Event: Measurement{
		Value: 30e-6, CPU: true, Of: "each event of a message of many",
		Command: "affinity import FILE",
		Take:    "CPU of `affinity up` in that time, by event; 100,000 events", Date: "2026-11-22",
	},
	Read: Measurement{
		Value: 0.5e-3, CPU: true, Of: "a read of a stored profile",
		Command: "affinity load --rate 1 --reads 500 --for 30s",
		Take:    "CPU of `affinity up` in that time, by read", Date: "2026-11-22",
	},
	RecomputeUser: Measurement{
		Value: preview.UserCPU, CPU: true, Of: "a user of 7 events in a recompute, with writes",
		Command: "affinity bench recompute --readers history --events 7 --data=",
		Take:    "CPU s, by user", Date: "2026-11-23",
	},
	RecomputeEvent: Measurement{
		Value: preview.EventCPU, CPU: true, Of: "an event of a user of 500 in a recompute, with writes",
		Command: "affinity bench recompute --readers history --events 500 --data=",
		Take:    "CPU s, by event", Date: "2026-11-23",
	},
	Line: Measurement{
		Value: 435, Of: "the line that process logs for a message",
		Command: "affinity up",
		Take:    "length of the line of one event; what Logging adds is assumed", Date: "2026-11-22",
	},
}

// Measurements returns them in the order of the page.
func Measurements() []Measurement {
	m := Measured
	return []Measurement{m.Row, m.Block, m.Message, m.Request, m.Event, m.Read, m.RecomputeUser, m.RecomputeEvent, m.Line}
}
