package render

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/affinityengine/affinity/scripts/affinity/plan"
)

// Plan writes the estimate of a month: what is needed, a line for each item with a
// price, the sum, and the prices that are unknown.
func Plan(out io.Writer, c plan.Comparison) error {
	var text bytes.Buffer
	writeNeeds(&text, c.Now)
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	last := ""
	if c.Before != nil {
		last = "before\t"
	}
	fmt.Fprintf(table, "a month\tprice\tUSD\t%s what\n", last)
	for _, line := range c.Now.Lines {
		if line.USD == nil {
			continue
		}
		if c.Before != nil {
			last = before(c.Before, line.What) + "\t"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s %s\n", Quantity(line.Quantity), line.Price, Dollars(line.USD), last, line.What)
	}
	if c.Before != nil {
		last = Dollars(c.Before.Total) + "\t"
	}
	sum := "sum of what has a price"
	if c.Now.Total == nil {
		sum = "no sum: the price of the main item, Bigtable's nodes, is unknown"
	}
	fmt.Fprintf(table, "\t\t%s\t%s %s\n", Dollars(c.Now.Total), last, sum)
	if err := table.Flush(); err != nil {
		return err
	}
	writeBilling(&text, c.Now)
	writeMachine(&text, c.Machine)
	writeUnknown(&text, c)
	_, err := out.Write(text.Bytes())
	return err
}

// before returns the cost of an item before, or a dash if it was part of another one.
func before(b *plan.Bill, what string) string {
	for _, line := range b.Lines {
		if line.What == what {
			return Dollars(line.USD)
		}
	}
	return "-"
}

// writeBilling names the functions that would cost less by instances.
func writeBilling(text *bytes.Buffer, b plan.Bill) {
	title := "\nBilled by instances, these functions would cost less (--billing cheapest, and billing in Terraform):\n"
	for _, fn := range b.Functions {
		if fn.Saves() > 0 {
			fmt.Fprintf(text, "%s  %s: %s in place of %s\n", title, fn.Name, Dollars(fn.ByInstances), Dollars(fn.ByRequests))
			title = ""
		}
	}
}

// writeNeeds writes the workload, and what it takes beside money.
func writeNeeds(text *bytes.Buffer, b plan.Bill) {
	w, n := b.Workload, b.Needs
	fmt.Fprintf(text, "%s events a day in requests of %s, %s reads a second; %s users with %s events each, kept "+
		"%s days\n\n",
		Quantity(w.EventsPerDay), Quantity(w.EventsPerRequest), Quantity(w.ReadsPerSecond), Quantity(w.Users),
		Quantity(n.EventsPerUser), Quantity(w.RetentionDays))
	each := ""
	if w.Clusters > 1 {
		each = " in each cluster"
	}
	fmt.Fprintf(text, "nodes      %s%s: the load at its peak needs %s, the storage %s\n", Quantity(n.Nodes.Total),
		each, Quantity(n.Nodes.Load), Quantity(n.Nodes.Storage))
	fmt.Fprintf(text, "storage    %s GiB: the log %s, histories %s, users' rows %s\n",
		Quantity(n.LogGiB+n.HistoryGiB+n.UsersGiB), Quantity(n.LogGiB), Quantity(n.HistoryGiB), Quantity(n.UsersGiB))
	fmt.Fprintf(text, "a month    %s messages, %s requests and pushes, %s tasks, %s GiB of logs\n",
		Quantity(n.Messages), Quantity(n.Requests), Quantity(n.Tasks), Quantity(n.LoggedGiB))
	fmt.Fprintf(text, "CPU        %s vCPU are billed on average\n", Quantity(n.VCPU))
	fmt.Fprintf(text, "recompute  of all users after a change of the strategy: %s seconds of one node, %s "+
		"seconds of one core\n\n", Quantity(n.Recompute.NodeSeconds), Quantity(n.Recompute.CoreSeconds))
}

// writeMachine writes the bill of one machine, and how far it goes.
func writeMachine(text *bytes.Buffer, m plan.Machine) {
	fmt.Fprint(text, "\nOne machine with affinity serve in place of the deployment (terraform/single); while it is "+
		"away, so is the engine:\n")
	if m.Type == "" {
		fmt.Fprintf(text, "  none of the types here is large enough: the busiest minute takes %s cores\n", Quantity(m.Cores))
	} else {
		fmt.Fprintf(text, "  %s with a disk of %s GiB; the busiest minute takes %s cores\n", m.Type, Quantity(m.DiskGiB),
			Quantity(m.Cores))
		for _, line := range m.Lines {
			if line.USD != nil {
				fmt.Fprintf(text, "  %8s  %s\n", Dollars(line.USD), line.What)
			}
		}
		fmt.Fprintf(text, "  %8s  sum of what has a price\n", Dollars(&m.Sum))
	}
	fmt.Fprintf(text, "  the largest type serves %s events a day like these\n", Quantity(m.UpTo))
}

func writeUnknown(text *bytes.Buffer, c plan.Comparison) {
	lines := slices.Concat(c.Now.Lines, c.Machine.Lines)
	unknown := plan.Unknown(lines, c.Prices)
	if len(unknown) > 0 {
		fmt.Fprintf(text, "\nTheir price is unknown. Read it on its page and give it as --price NAME=USD, or all of "+
			"them in a file with --price-file:\n")
	}
	for _, price := range unknown {
		var what []string
		for _, line := range lines {
			if line.Price == price.Name {
				what = append(what, fmt.Sprintf("%s %s", line.What, Quantity(line.Quantity)))
			}
		}
		fmt.Fprintf(text, "  %s (a %s): %s; %s\n", price.Name, price.Unit, strings.Join(what, ", "), price.Page)
	}
	fmt.Fprintln(text, "\nFree allotments, discounts, backups, warm instances without --tfvars, and taxes are left out. "+
		"functions/docs/operate/costs.md has the prices' dates.")
}

// Dollars is a cost to the cent, or unknown.
func Dollars(usd *float64) string {
	if usd == nil {
		return "unknown"
	}
	return strconv.FormatFloat(*usd, 'f', 2, 64)
}

// Quantity is a quantity in four digits: 0.0314, 12.57, 1,971.
func Quantity(n float64) string {
	if n == 0 {
		return "0"
	}
	if math.Abs(n) >= 1000 {
		step := math.Pow(10, math.Floor(math.Log10(n))-3)
		return grouped(int64(math.Round(n/step) * step))
	}
	return strconv.FormatFloat(n, 'g', 4, 64)
}
