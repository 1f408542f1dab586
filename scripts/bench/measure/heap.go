package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/affinityengine/affinity/shared/store"
)

// Heap measures the memory of a recompute from histories, for a tenth of the users
// and for all.
type Heap struct {
	Users, Events int // events per user
	Common
}

// HeapBar is the maximum heap of a recompute in bytes, for any number of users.
const HeapBar = 256 << 20

// HeapReport is the outcome. --json prints it as it is.
type HeapReport struct {
	Machine   Machine   `json:"machine"`
	InProcess bool      `json:"inProcess"` // the heap includes the server's
	BarBytes  int64     `json:"barBytes"`
	Runs      []HeapRun `json:"runs"`
}

// HeapRun is one recompute of all users in one call, with writes.
type HeapRun struct {
	Users          int     `json:"users"`
	Events         int     `json:"events"` // per user
	Seconds        float64 `json:"seconds"`
	UsersPerSecond float64 `json:"usersPerSecond"`
	PeakHeapBytes  uint64  `json:"peakHeapBytes"` // of the client, with garbage that is not collected yet
	BytesReceived  int64   `json:"bytesReceived"`
	LoadSeconds    float64 `json:"loadSeconds"`
}

// soakFacets is small: there are many users with little data.
const soakFacets = 3

// Check returns a FlagError for a value out of range.
func (o Heap) Check() error {
	switch {
	case o.Users < 1 || o.Users > maxUsers:
		return flagf("--users %d: must be 1 to %d", o.Users, maxUsers)
	case o.Events < 1:
		return flagf("--events %d: must be 1 or more", o.Events)
	}
	return nil
}

// Run measures.
func (o Heap) Run(ctx context.Context, start Starter) (HeapReport, error) {
	if err := o.Check(); err != nil {
		return HeapReport{}, err
	}
	report := HeapReport{Machine: machine(), InProcess: o.InProcess, BarBytes: HeapBar}
	for _, users := range []int{max(1, o.Users/10), o.Users} {
		run, err := o.soak(ctx, start, users)
		if err != nil {
			return HeapReport{}, fmt.Errorf("recompute %d users: %w", users, err)
		}
		report.Runs = append(report.Runs, run)
	}
	return report, nil
}

func (o Heap) soak(ctx context.Context, start Starter, users int) (run HeapRun, err error) {
	c, err := openClient(ctx, start)
	if err != nil {
		return HeapRun{}, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	d := newDataset(shape{users: users, events: o.Events, facets: soakFacets, selected: soakFacets, values: 1})
	o.progress("loading %d users", users)
	load, err := c.measure(func() error { return loadHistories(ctx, c, d, 0) })
	if err != nil {
		return HeapRun{}, err
	}
	o.progress("recomputing %d users", users)
	r := newHistoryReader(c, d, 0)
	t := newTarget(c, true)
	taken, err := c.measure(func() error { return r.recomputeShard(ctx, store.Range{}, t) })
	if err == nil && t.total.users != int64(users) {
		err = fmt.Errorf("%d were computed", t.total.users)
	}
	return HeapRun{
		Users: users, Events: o.Events, Seconds: taken.seconds, UsersPerSecond: ratio(float64(users), taken.seconds),
		PeakHeapBytes: taken.peakHeap, BytesReceived: taken.received, LoadSeconds: load.seconds,
	}, err
}

// Print writes the report for people.
func (r HeapReport) Print(out io.Writer) error {
	r.Machine.print(out, r.InProcess)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "users\tevents each\tseconds\tusers/s\tpeak heap MB\tbar MB\tloaded in s\t")
	for _, x := range r.Runs {
		fmt.Fprintf(w, "%d\t%d\t%.1f\t%.0f\t%.1f\t%.1f\t%.1f\t\n", x.Users, x.Events, x.Seconds, x.UsersPerSecond,
			megabytes(x.PeakHeapBytes), megabytes(r.BarBytes), x.LoadSeconds)
	}
	return w.Flush()
}
