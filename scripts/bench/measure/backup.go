package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/local/backup"
	"github.com/affinityengine/affinity/shared/local/operator"
)

// Backup measures what backups under way cost the answers to events. Loops with and without backups take turns on one
// engine, which is in this process, as are its clients and what writes the backups.
type Backup struct {
	Dir      string  // a folder on the disk; empty: that of temporary files
	Events   int     // in the folder of data before the first loop
	Rate     float64 // events per second of each loop
	Duration time.Duration
	Repeat   int
	Common
}

// BackupReport is the outcome. --json prints it as it is.
type BackupReport struct {
	Machine Machine `json:"machine"`
	Events  int     `json:"events"`
	Rate    float64 `json:"rate"`
	// Backups were written while events came, each in full, of Bytes in Seconds (medians).
	Backups int     `json:"backups"`
	Bytes   float64 `json:"bytes"`
	Seconds float64 `json:"seconds"`
	// Alone and Beside are from when an event was due to its answer, without a backup and beside one.
	Alone  Percentiles `json:"alone"`
	Beside Percentiles `json:"beside"`
}

// fillBatch is how many events a request has that fills the folder.
const fillBatch = 1000

// Check returns a FlagError for a value out of range.
func (o Backup) Check() error {
	if o.Events < fillBatch || o.Rate <= 0 || o.Duration <= 0 || o.Repeat < 1 {
		return flagf("--events must be at least %d, and --rate, --for and --repeat more than 0", fillBatch)
	}
	return nil
}

// Run measures.
func (o Backup) Run(ctx context.Context, _ Starter) (report BackupReport, err error) {
	if err := o.Check(); err != nil {
		return BackupReport{}, err
	}
	dir, err := os.MkdirTemp(o.Dir, "affinity-bench-backup")
	if err != nil {
		return BackupReport{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	n, err := startAnswering(ctx, filepath.Join(dir, "data"), true, 0)
	if err != nil {
		return BackupReport{}, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	report = BackupReport{Machine: machine(), Events: o.Events, Rate: o.Rate}
	o.progress("%d events", o.Events)
	for first := 0; first < o.Events; first += fillBatch {
		if err := n.events(ctx, first, fillBatch); err != nil {
			return report, err
		}
	}
	if err := n.s.Idle(ctx); err != nil {
		return report, err
	}
	if err := n.open(ctx, o.Rate, min(o.Duration, 2*time.Second), newStopwatch()); err != nil { // a warm-up
		return report, err
	}
	waits := map[bool]stopwatch{false: newStopwatch(), true: newStopwatch()}
	var bytes, seconds []float64
	for i := range 2 * o.Repeat {
		beside := i%4 == 1 || i%4 == 2 // each goes first as often as the other
		o.progress("run %d of %d, backups %v", i/2+1, o.Repeat, beside)
		loop, end := context.WithCancel(ctx)
		both := errgroup.Group{}
		if beside {
			both.Go(func() error {
				for loop.Err() == nil {
					began := time.Now()
					size, err := o.write(ctx, n, filepath.Join(dir, "backups"))
					if err != nil {
						return err
					}
					bytes, seconds = append(bytes, float64(size)), append(seconds, time.Since(began).Seconds())
				}
				return nil
			})
		}
		err := n.open(ctx, o.Rate, o.Duration, waits[beside])
		end()
		if err = errors.Join(err, both.Wait(), n.s.Idle(ctx)); err != nil {
			return report, err
		}
	}
	report.Backups, report.Bytes, report.Seconds = len(bytes), middle(bytes), middle(seconds)
	report.Alone, report.Beside = waits[false].percentiles(), waits[true].percentiles()
	return report, nil
}

// write writes a backup to a folder that has none yet, as affinity backup does, and removes it.
func (o Backup) write(ctx context.Context, n *noise, place string) (size int64, err error) {
	c, err := operator.NewClient(n.s.URL, n.s.Operator)
	if err != nil {
		return 0, err
	}
	stream, err := c.Backup(ctx)
	if err != nil {
		return 0, err
	}
	var done backup.Written
	content, err := backup.Receive(stream)
	if err == nil {
		done, err = backup.Write(place, content, backup.Options{Paced: true})
	}
	return done.Manifest.Bytes(), errors.Join(err, stream.Close(), os.RemoveAll(place))
}

// Print prints the report.
func (r BackupReport) Print(out io.Writer) error {
	r.Machine.print(out, true)
	verdict := "misses the bar"
	if r.Beside.P99 <= 2*r.Alone.P99 {
		verdict = "meets the bar"
	}
	_, err := fmt.Fprintf(out, "%d events in the folder; %d backups of %.1f MB, each in %.2f s\n"+
		"at %.0f events/s       p50      p99\n"+
		"without a backup %6.1f ms  %5.1f ms\n"+
		"beside a backup  %6.1f ms  %5.1f ms\n"+
		"ratio            %6.2f     %5.2f\n"+
		"that %s: at most twice the p99\n",
		r.Events, r.Backups, r.Bytes/1e6, r.Seconds, r.Rate, r.Alone.P50, r.Alone.P99, r.Beside.P50, r.Beside.P99,
		r.Beside.P50/r.Alone.P50, r.Beside.P99/r.Alone.P99, verdict)
	return err
}
