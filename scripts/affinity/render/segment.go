package render

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

// histogramWidth is the length of the longest bar of a histogram, in characters.
const histogramWidth = 40

// Users is a number of users that may be hidden.
func Users(c api.UserCount) string {
	if c.Fewer {
		return c.String() + " users"
	}
	return plural(c.N, "user")
}

// Timestamp is a time to the second, in UTC.
func Timestamp(t api.Time) string { return timestamp(t) }

// SegmentProgress is how far a build of the lists of segments is.
func SegmentProgress(j api.SegmentBuild) Progress {
	return Progress{State: j.State, Planned: j.PlannedUsers, Visited: j.VisitedUsers, Count: j.Users,
		Counted: "users", Wait: api.Wait{Place: j.Place}}
}

// Histogram draws the distribution of a value's scores, a bar for each bucket, and
// prints its quantiles.
func Histogram(out io.Writer, filter string, h api.SegmentHistogram) error {
	if _, err := fmt.Fprintf(out, "%s: %s as of %s\n", cli.Printable(filter), Users(h.Users),
		timestamp(h.AsOf)); err != nil {
		return err
	}
	if h.Quantiles == nil {
		return nil
	}
	q := h.Quantiles
	if _, err := fmt.Fprintf(out, "mean %s, p10 %s, p50 %s, p90 %s, p99 %s\n\n", number(h.Mean), number(q.P10),
		number(q.P50), number(q.P90), number(q.P99)); err != nil {
		return err
	}
	var most int64 = 1
	for _, b := range h.Buckets {
		most = max(most, b.Users)
	}
	table := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.AlignRight)
	for _, b := range h.Buckets {
		// A bucket with any user has a bar.
		n := int((b.Users*histogramWidth + most - 1) / most)
		fmt.Fprintf(table, "%s\tto\t%s\t%s\t %s\n", number(b.From), number(b.To), grouped(b.Users), strings.Repeat("█", n))
	}
	return table.Flush()
}

// Sizes prints the size of a segment on each day.
func Sizes(out io.Writer, sizes []api.SegmentSize) error {
	if len(sizes) == 0 {
		_, err := fmt.Fprintln(out, "no size yet: the next build counts its users")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DAY\tUSERS")
	for _, s := range sizes {
		fmt.Fprintf(table, "%s\t%s\n", cli.Printable(s.Day), s.Users)
	}
	return table.Flush()
}
