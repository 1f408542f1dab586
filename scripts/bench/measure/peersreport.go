package measure

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// PeersReport is the outcome of Peers. --json prints it as it is.
type PeersReport struct {
	Machine   Machine   `json:"machine"`
	Repeat    int       `json:"repeat"`
	Workers   int       `json:"workers"` // threads or processes of each
	InProcess bool      `json:"inProcess"`
	Sets      []PeerSet `json:"sets"`
	// Absent says of each database that is not installed what is missing.
	Absent []string `json:"absent,omitempty"`
}

// PeerSet is what was measured with one data set.
type PeerSet struct {
	Set
	Peers []PeerResult `json:"peers"` // first the engine
}

// PeerResult is how all profiles were computed and stored. Times are those of the
// median run.
type PeerResult struct {
	Peer            string    `json:"peer"`
	Layout          string    `json:"layout"`
	Seconds         float64   `json:"seconds"`
	Walls           []float64 `json:"walls"` // seconds of all runs
	EventsPerSecond float64   `json:"eventsPerSecond"`
	// CPUSeconds is the processor time: of the engine's process, or of a database's; 0
	// where the system does not tell.
	CPUSeconds float64 `json:"cpuSeconds"`
	// ServerCPUSeconds is the processor time of the stand-in for Bigtable.
	ServerCPUSeconds float64 `json:"serverCPUSeconds,omitempty"`
	// EngineFaster is how many times less wall time the engine took, EngineCPULess how
	// many times less processor time, without that of the server.
	EngineFaster  float64 `json:"engineFaster,omitempty"`
	EngineCPULess float64 `json:"engineCPULess,omitempty"`
}

// Print writes the report for people.
func (r PeersReport) Print(out io.Writer) error {
	fmt.Fprintf(out, "all profiles computed and stored, the same to %g; %d threads or processes, median of %d "+
		"after one\n", tolerance, r.Workers, r.Repeat)
	fmt.Fprintln(out, "seconds are wall time; CPU s is the processor time of the engine or of the database, "+
		"server CPU s that of the Bigtable stand-in")
	r.Machine.print(out, r.InProcess)
	for _, s := range r.Sets {
		fmt.Fprintf(out, "\n%s\n", s.Set)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(w, "computed by\tdata\tseconds\tevents/s\tCPU s\tserver CPU s\tengine x wall\tengine x CPU\t")
		for _, x := range s.Peers {
			server := "-"
			if x.ServerCPUSeconds > 0 {
				server = fmt.Sprintf("%.3f", x.ServerCPUSeconds)
			}
			fmt.Fprintf(w, "%s\t%s\t%.3f\t%.0f\t%.3f\t%s\t%s\t%s\t\n", x.Peer, x.Layout, x.Seconds, x.EventsPerSecond,
				x.CPUSeconds, server,
				times(x.EngineFaster), times(x.EngineCPULess))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	for i, line := range r.Absent {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, line)
	}
	return nil
}
