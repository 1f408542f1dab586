package measure

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// Report is the outcome of Recompute. --json prints it as it is.
type Report struct {
	Machine Machine  `json:"machine"`
	Config  Config   `json:"config"`
	Results []Result `json:"results"` // by reader, first without writes
}

// Machine is where and when something was measured.
type Machine struct {
	CPUs      int    `json:"cpus"`
	Processor string `json:"processor,omitempty"`
	GoVersion string `json:"goVersion"`
	Date      string `json:"date"`
}

// Config is what was measured.
type Config struct {
	Users     int  `json:"users"`
	Events    int  `json:"events"` // per user
	Facets    int  `json:"facets"`
	Values    int  `json:"values"` // maximum per facet and event
	Selected  int  `json:"selected"`
	Tail      int  `json:"tail"` // newest events of each user outside the history
	Repeat    int  `json:"repeat"`
	Workers   int  `json:"workers"`
	InProcess bool `json:"inProcess"` // processor time, allocations and heap include the server's
}

// Result is the outcome of one reader, without or with writing the profiles. Times
// are those of the median run.
type Result struct {
	Reader string `json:"reader"`
	Writes bool   `json:"writes"`

	EventsPerSecond  float64   `json:"eventsPerSecond"`
	Seconds          float64   `json:"seconds"`
	Walls            []float64 `json:"walls"` // seconds of all runs
	ClientCPUSeconds float64   `json:"clientCPUSeconds"`
	BytesReceived    int64     `json:"bytesReceived"` // of gRPC messages
	Allocations      uint64    `json:"allocations"`
	PeakHeapBytes    uint64    `json:"peakHeapBytes"`

	// The floor receives the same rows and decodes nothing of them.
	FloorSeconds       float64   `json:"floorSeconds"`
	FloorWalls         []float64 `json:"floorWalls"`
	FloorCPUSeconds    float64   `json:"floorCPUSeconds"`
	FloorBytesReceived int64     `json:"floorBytesReceived"`

	SecondsToFloor float64 `json:"secondsToFloor"`
	CPUToFloor     float64 `json:"cpuToFloor"`
	// How many times faster, and with how many times less processor time, than
	// narrow, which writes as well where this does; absent if narrow was not run.
	SpeedupToNarrow    float64 `json:"speedupToNarrow,omitempty"`
	CPUSpeedupToNarrow float64 `json:"cpuSpeedupToNarrow,omitempty"`

	LoadSeconds float64 `json:"loadSeconds"` // for filling the tables
}

func (o Recompute) config() Config {
	return Config{Users: o.Users, Events: o.Events, Facets: o.Facets, Values: o.Values, Selected: o.Selected, Tail: o.Tail,
		Repeat: o.Repeat, Workers: workers(), InProcess: o.InProcess}
}

func (o Recompute) result(name string, writes bool, floor, t taken) Result {
	return Result{
		Reader: name, Writes: writes,
		EventsPerSecond: ratio(float64(o.Users)*float64(o.Events), t.seconds), Seconds: t.seconds, Walls: t.walls,
		ClientCPUSeconds: t.cpu, BytesReceived: t.received, Allocations: t.allocs, PeakHeapBytes: t.peakHeap,
		FloorSeconds: floor.seconds, FloorWalls: floor.walls, FloorCPUSeconds: floor.cpu, FloorBytesReceived: floor.received,
		SecondsToFloor: ratio(t.seconds, floor.seconds), CPUToFloor: ratio(t.cpu, floor.cpu),
	}
}

func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// compare fills in how each reader compares with narrow.
func (r *Report) compare() {
	for i := range r.Results {
		for j := range r.Results {
			result, narrow := &r.Results[i], &r.Results[j]
			if narrow.Reader == Narrow && narrow.Writes == result.Writes {
				result.SpeedupToNarrow = ratio(narrow.Seconds, result.Seconds)
				result.CPUSpeedupToNarrow = ratio(narrow.ClientCPUSeconds, result.ClientCPUSeconds)
			}
		}
	}
}

// Print writes the report for people.
func (r Report) Print(out io.Writer) error {
	c := r.Config
	fmt.Fprintf(out, "%d users x %d events, %d facets of 1 to %d values, %d scored, %d newest events outside histories; %d workers, median of %d\n",
		c.Users, c.Events, c.Facets, c.Values, c.Selected, c.Tail, c.Workers, c.Repeat)
	r.Machine.print(out, c.InProcess)
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "reader\twrites\tseconds\tevents/s\tCPU s\tfloor s\tfloor CPU s\tCPU/floor\tMB in\tallocs\tpeak heap MB\tx narrow\tx narrow CPU\t")
	for _, x := range r.Results {
		writes := "no"
		if x.Writes {
			writes = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%.3f\t%.0f\t%.3f\t%.3f\t%.3f\t%.2f\t%.1f\t%d\t%.0f\t%s\t%s\t\n", x.Reader, writes, x.Seconds, x.EventsPerSecond,
			x.ClientCPUSeconds, x.FloorSeconds, x.FloorCPUSeconds, x.CPUToFloor, megabytes(x.BytesReceived), x.Allocations,
			megabytes(x.PeakHeapBytes), times(x.SpeedupToNarrow), times(x.CPUSpeedupToNarrow))
	}
	return w.Flush()
}

func (m Machine) print(out io.Writer, inProcess bool) {
	fmt.Fprintf(out, "%d CPUs", m.CPUs)
	if m.Processor != "" {
		fmt.Fprintf(out, " (%s)", m.Processor)
	}
	fmt.Fprintf(out, ", %s, %s\n", m.GoVersion, m.Date)
	if inProcess {
		fmt.Fprintln(out, "the server shares the process: processor time, allocations and heap are those of client and server together")
	}
}

func megabytes[T int64 | uint64](bytes T) float64 { return float64(bytes) / 1e6 }

func times(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", x)
}

// processor is the name of the machine's processor, where Linux tells it.
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
