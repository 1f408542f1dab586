package measure

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"
)

// SchemasReport is the outcome of Schemas. --json prints it as it is.
type SchemasReport struct {
	Machine Machine        `json:"machine"`
	Config  SchemasConfig  `json:"config"`
	Results []SchemaResult `json:"results"` // by scenario, size and schema
	// Files are the written files: the results and a plot of each scenario.
	Files []string `json:"files,omitempty"`
}

// SchemasConfig is what was measured.
type SchemasConfig struct {
	Scale     int  `json:"scale"`
	Facets    int  `json:"facets"`
	Values    int  `json:"values"` // maximum per facet and event
	Selected  int  `json:"selected"`
	Repeat    int  `json:"repeat"`
	Workers   int  `json:"workers"`
	InProcess bool `json:"inProcess"` // processor time and heap include the server's
}

// SchemaResult is how all profiles of one scenario and size were built from one
// schema, without writing them. Times are those of the median run.
type SchemaResult struct {
	Scenario string `json:"scenario"`
	Users    int    `json:"users"`
	Events   int    `json:"events"` // per user
	Schema   string `json:"schema"`

	Seconds          float64   `json:"seconds"`
	Walls            []float64 `json:"walls"` // seconds of all runs
	EventsPerSecond  float64   `json:"eventsPerSecond"`
	ClientCPUSeconds float64   `json:"clientCPUSeconds"`
	BytesReceived    int64     `json:"bytesReceived"` // of gRPC messages
	BytesPerEvent    float64   `json:"bytesPerEvent"`
	PeakHeapBytes    uint64    `json:"peakHeapBytes"` // of the client, with garbage that is not collected yet
	// StoredBytes is the size of keys, once per row, qualifiers and values, without
	// OriginalBytes. OriginalBytes is the size of the original events: the same in
	// every log, and 0 in histories, which exist beside a log, and with encodings that
	// no log can have.
	StoredBytes    int64   `json:"storedBytes"`
	StoredPerEvent float64 `json:"storedPerEvent"`
	OriginalBytes  int64   `json:"originalBytes"`
	LoadSeconds    float64 `json:"loadSeconds"` // for filling the tables
}

func (o Schemas) config() SchemasConfig {
	return SchemasConfig{Scale: o.Scale, Facets: o.Facets, Values: o.Values, Selected: o.Selected, Repeat: o.Repeat,
		Workers: workers(), InProcess: o.InProcess}
}

func schemaResult(name string, d *dataset, t, load taken, h held) SchemaResult {
	events := float64(d.total())
	return SchemaResult{
		Users: d.users, Events: d.shape.events, Schema: name,
		Seconds: t.seconds, Walls: t.walls, EventsPerSecond: ratio(events, t.seconds), ClientCPUSeconds: t.cpu,
		BytesReceived: t.received, BytesPerEvent: ratio(float64(t.received), events), PeakHeapBytes: t.peakHeap,
		StoredBytes: h.bytes, StoredPerEvent: ratio(float64(h.bytes), events), OriginalBytes: h.originals,
		LoadSeconds: load.seconds,
	}
}

// Print writes the report for people.
func (r SchemasReport) Print(out io.Writer) error {
	c := r.Config
	fmt.Fprintf(out, "%d facets of 1 to %d values, %d scored; %d workers, median of %d; stored without events as "+
		"they were sent\n",
		c.Facets, c.Values, c.Selected, c.Workers, c.Repeat)
	r.Machine.print(out, c.InProcess)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i, x := range r.Results {
		if i == 0 || r.Results[i-1].Scenario != x.Scenario {
			if err := w.Flush(); err != nil { // each scenario has its own columns
				return err
			}
			fmt.Fprintf(out, "\n%s\n", x.Scenario)
			fmt.Fprintln(w, "users\tevents each\tevents\tschema\tseconds\tevents/s\tCPU s\tMB in\tbytes/event\tpeak "+
				"heap MB\tMB stored\tstored/event\t")
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t%s\t%.3f\t%.0f\t%.3f\t%.1f\t%.1f\t%.0f\t%.1f\t%.1f\t\n", x.Users, x.Events,
			x.Users*x.Events, x.Schema,
			x.Seconds, x.EventsPerSecond, x.ClientCPUSeconds, megabytes(x.BytesReceived), x.BytesPerEvent,
			megabytes(x.PeakHeapBytes),
			megabytes(x.StoredBytes), x.StoredPerEvent)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i, name := range r.Files {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, name)
	}
	return nil
}

// resultsFile is the name of the CSV file.
const resultsFile = "results.csv"

var csvColumns = []string{"scenario", "users", "events_per_user", "events", "schema", "seconds",
	"events_per_second", "client_cpu_seconds",
	"bytes_received", "bytes_per_event", "peak_heap_bytes", "stored_bytes", "stored_bytes_per_event",
	"original_bytes", "load_seconds"}

// csv writes a line per result.
func (r SchemasReport) csv(out io.Writer) error {
	w := csv.NewWriter(out)
	rows := [][]string{csvColumns}
	decimal := func(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }
	for _, x := range r.Results {
		rows = append(rows, []string{
			x.Scenario, strconv.Itoa(x.Users), strconv.Itoa(x.Events), strconv.Itoa(x.Users * x.Events), x.Schema,
			decimal(x.Seconds, 6), decimal(x.EventsPerSecond, 0), decimal(x.ClientCPUSeconds, 6),
			strconv.FormatInt(x.BytesReceived, 10), decimal(x.BytesPerEvent, 1), strconv.FormatUint(x.PeakHeapBytes, 10),
			strconv.FormatInt(x.StoredBytes, 10), decimal(x.StoredPerEvent, 1), strconv.FormatInt(x.OriginalBytes, 10),
			decimal(x.LoadSeconds, 3),
		})
	}
	return w.WriteAll(rows)
}

// write writes the files of a report to an existing directory.
func (r *SchemasReport) write(dir string) error {
	name := filepath.Join(dir, resultsFile)
	if err := writeFile(name, r.csv); err != nil {
		return err
	}
	r.Files = append(r.Files, name)
	for _, scenario := range r.scenarios() {
		name := filepath.Join(dir, scenario+".svg")
		if err := writeFile(name, func(w io.Writer) error { return r.plot(scenario, w) }); err != nil {
			return err
		}
		r.Files = append(r.Files, name)
	}
	return nil
}

// scenarios lists the measured scenarios in their order.
func (r SchemasReport) scenarios() (names []string) {
	for i, x := range r.Results {
		if i == 0 || r.Results[i-1].Scenario != x.Scenario {
			names = append(names, x.Scenario)
		}
	}
	return names
}

func writeFile(name string, write func(io.Writer) error) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("create a file in the directory of --out: %w", err)
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	if err := write(f); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
