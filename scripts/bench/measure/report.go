package measure

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Report is the outcome of Recompute. --json prints it as it is.
type Report struct {
	Machine Machine `json:"machine"`
	Config  Config  `json:"config"`
	Sets    []Set   `json:"sets"` // synthetic ones by events a user, then real ones
	// Absent is the directory in which real data sets were looked for and not found.
	Absent string `json:"absent,omitempty"`
}

// Set is what was measured with one data set.
type Set struct {
	Name          string   `json:"name,omitempty"` // of a real data set
	Users         int      `json:"users"`
	Events        int      `json:"events"` // of all users
	EventsPerUser float64  `json:"eventsPerUser"`
	Results       []Result `json:"results,omitempty"` // by reader, first without writes
}

func (d *dataset) set() Set {
	return Set{Name: d.name, Users: d.users, Events: d.total(), EventsPerUser: ratio(float64(d.total()), float64(d.users))}
}

// String says which data set it is, and how many events a user has.
func (s Set) String() string {
	name := "synthetic"
	if s.Name != "" {
		name = s.Name
	}
	each := strconv.FormatFloat(s.EventsPerUser, 'f', 1, 64)
	return fmt.Sprintf("%s events a user (%s: %d users, %d events)", strings.TrimSuffix(each, ".0"), name, s.Users,
		s.Events)
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
	// Server is what the server counted. A user's share of its rows follows.
	Server             Counts  `json:"server"`
	RowsReadPerUser    float64 `json:"rowsReadPerUser"`
	RowsWrittenPerUser float64 `json:"rowsWrittenPerUser"`

	// The floor receives the same rows and decodes nothing of them; absent if it was
	// not measured.
	FloorSeconds       float64   `json:"floorSeconds,omitempty"`
	FloorWalls         []float64 `json:"floorWalls,omitempty"`
	FloorCPUSeconds    float64   `json:"floorCPUSeconds,omitempty"`
	FloorBytesReceived int64     `json:"floorBytesReceived,omitempty"`
	SecondsToFloor     float64   `json:"secondsToFloor,omitempty"`
	CPUToFloor         float64   `json:"cpuToFloor,omitempty"`

	// How many times faster, and with how many times less processor time, than
	// narrow, which writes as well where this does; absent if narrow was not run.
	SpeedupToNarrow    float64 `json:"speedupToNarrow,omitempty"`
	CPUSpeedupToNarrow float64 `json:"cpuSpeedupToNarrow,omitempty"`

	LoadSeconds float64 `json:"loadSeconds"` // for filling the tables
}

func (o Recompute) config() Config {
	return Config{Facets: o.Facets, Values: o.Values, Selected: o.Selected, Tail: o.Tail, Repeat: o.Repeat,
		Workers: workers(), InProcess: o.InProcess}
}

func result(name string, writes bool, d *dataset, floor, t taken) Result {
	users := float64(d.users)
	return Result{
		Reader: name, Writes: writes,
		EventsPerSecond: ratio(float64(d.total()), t.seconds), Seconds: t.seconds, Walls: t.walls,
		ClientCPUSeconds: t.cpu, BytesReceived: t.received, Allocations: t.allocs, PeakHeapBytes: t.peakHeap,
		Server: t.server, RowsReadPerUser: ratio(float64(t.server.RowsRead), users),
		RowsWrittenPerUser: ratio(float64(t.server.RowsWritten), users),
		FloorSeconds:       floor.seconds, FloorWalls: floor.walls, FloorCPUSeconds: floor.cpu,
		FloorBytesReceived: floor.received,
		SecondsToFloor:     ratio(t.seconds, floor.seconds), CPUToFloor: ratio(t.cpu, floor.cpu),
	}
}

func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// compare fills in how each reader compares with narrow.
func (s *Set) compare() {
	for i := range s.Results {
		for j := range s.Results {
			result, narrow := &s.Results[i], &s.Results[j]
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
	fmt.Fprintf(out, "synthetic: %d facets of 1 to %d values, %d scored; %d newest events of a user outside "+
		"histories; %d workers, median of %d\n",
		c.Facets, c.Values, c.Selected, c.Tail, c.Workers, c.Repeat)
	fmt.Fprintln(out, "seconds are wall time, CPU s is the processor time of the client; rows are those of a "+
		"user, counted at the server")
	r.Machine.print(out, c.InProcess)
	for _, s := range r.Sets {
		fmt.Fprintf(out, "\n%s\n", s)
		if err := s.print(out); err != nil {
			return err
		}
	}
	if r.Absent != "" {
		fmt.Fprintf(out, "\nno real data in %s: --data names a directory with a folder for each shop, which holds "+
			"%s, %s and %s\n",
			r.Absent, eventsFile, objectsFile, strategyFile)
	}
	return nil
}

func (s Set) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	floor := ""
	if s.Results[0].FloorSeconds > 0 {
		floor = "floor s\tfloor CPU s\tCPU/floor\t"
	}
	fmt.Fprintf(w, "reader\twrites\tseconds\tevents/s\tCPU s\tx narrow wall\tx narrow CPU\tMB in\trows "+
		"read\trows written\t%s\n", floor)
	for _, x := range s.Results {
		writes := "no"
		if x.Writes {
			writes = "yes"
		}
		if floor != "" {
			floor = fmt.Sprintf("%.3f\t%.3f\t%.2f\t", x.FloorSeconds, x.FloorCPUSeconds, x.CPUToFloor)
		}
		fmt.Fprintf(w, "%s\t%s\t%.3f\t%.0f\t%.3f\t%s\t%s\t%.1f\t%.2f\t%.2f\t%s\n", x.Reader, writes, x.Seconds,
			x.EventsPerSecond, x.ClientCPUSeconds,
			times(x.SpeedupToNarrow), times(x.CPUSpeedupToNarrow), megabytes(x.BytesReceived), x.RowsReadPerUser,
			x.RowsWrittenPerUser, floor)
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
		fmt.Fprintln(out, "the server shares the process: processor time, allocations and heap are those of client "+
			"and server together")
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
