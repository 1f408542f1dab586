package measure

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes the report for people.
func (r GrowthReport) Print(out io.Writer) error {
	c := r.Config
	fmt.Fprintf(out, "%d facets of 1 to %d values, %d scored; %d workers; the server keeps its files on disk\n", c.Facets,
		c.Values, c.Selected, c.Workers)
	fmt.Fprintln(out, "us are microseconds of processor time an event, of the client and of the server; an import and a "+
		"fold are of the users\nthat are new since the size before, a recompute is of all")
	r.Machine.print(out, false)
	for _, s := range r.Series {
		fmt.Fprintf(out, "\n%d events a user\n", s.EventsPerUser)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(w, "events\tusers\timport us\tfold us\trecompute us\trecompute s\tevents/s\tusers/s\tclient heap MB\t"+
			"server MB\tdisk GB\tbytes/event\t")
		for _, x := range s.Sizes {
			cost := x.Recompute
			fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\t%.1f\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f\t%.0f\t\n", x.Events, x.Users,
				x.Import.each(), x.Fold.each(), cost.each(), cost.Seconds, ratio(float64(cost.Events), cost.Seconds),
				ratio(float64(x.Users), cost.Seconds), megabytes(x.PeakHeapBytes), megabytes(x.ServerPeakBytes),
				float64(x.DiskBytes)/1e9, ratio(float64(x.DiskBytes), float64(x.Events)))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		for _, x := range s.Sizes {
			if !x.ForgotFiles {
				fmt.Fprintf(out, "at %d events the system may have had files in memory\n", x.Events)
			}
			if x.Breaks > 0 {
				fmt.Fprintf(out, "at %d events the run was broken off %d times: what it had not recorded was done again\n",
					x.Events, x.Breaks)
			}
		}
	}
	return nil
}

// each is the processor time of an event.
func (c Cost) each() string {
	n := float64(c.Events) / 1e6
	return fmt.Sprintf("%.1f+%.1f", ratio(c.ClientCPUSeconds, n), ratio(c.ServerCPUSeconds, n))
}
