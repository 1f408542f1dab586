// Package judge holds the commands that judge strategies before they are set: backtest
// compares them, tune searches for better ones, and try does so on files alone. They work
// on files in this process, or ask an engine for a job. It keeps nothing but the files
// that a command names.
package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/importer"
	"github.com/affinityengine/affinity/shared/judge/backtest"
)

// logFiles are the files that backtest, tune and try judge on, as flags and
// arguments name them.
type logFiles struct {
	index, objects string
	baseline       string
	events         []string
	written        command.EventForm
	leftOut        int                   // lines, whose events have a time that cannot be
	signIns        func(importer.SignIn) // nil: nobody asks
	// prepare may change the objects before events are read; nil: they stay.
	prepare func([]backtest.Object)
}

func (f *logFiles) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.index, "index", "", "index of the objects, and of events that name none\n"+
		"(default: the index of the first event, else "+command.DefaultIndex+")")
	cmd.Flags().StringVar(&f.objects, "objects", "",
		"catalog: one JSON object per line, or CSV, plain or gzip, - for standard input")
	cmd.Flags().StringVar(&f.baseline, "baseline", "", "what you really showed, judged as baseline: CSV or JSON lines with objectID,\n"+
		"position (from 1) and, for several lists, placement or category: a value of the facet of\n"+
		"--within; without one the line is of the list for all other pages")
	f.written.Flags(cmd.Flags())
}

// parse takes the arguments and checks the files.
func (f *logFiles) parse(cmd *cobra.Command, args []string) error {
	if err := cli.Require(cmd, "objects", "the catalog, such as --objects objects.ndjson.gz"); err != nil {
		return err
	}
	if len(args) == 0 {
		return cli.Usagef("EVENTS is missing: %s", cmd.UseLine())
	}
	f.events = args
	n := 0
	for _, path := range append(slices.Clone(f.events), f.objects, f.baseline) {
		if path == "-" {
			n++
		}
	}
	if n > 1 {
		return cli.Usagef("only one of --objects, --baseline and EVENTS can be standard input")
	}
	return f.written.Check()
}

// read reads the files into a log. dates are the attributes of objects that
// rankings go by.
func (f *logFiles) read(ctx context.Context, t *command.Tool, dates []string) (log *backtest.Log, err error) {
	open := func(path string) *importer.Source {
		if err != nil {
			return nil
		}
		var src *importer.Source
		src, err = importer.Open(path, t.In)
		return src
	}
	var sources []*importer.Source
	for _, path := range append([]string{f.objects}, f.events...) {
		if src := open(path); src != nil {
			sources = append(sources, src)
			defer func() { err = errors.Join(err, src.Close()) }()
		}
	}
	if err != nil {
		return nil, err
	}
	files := importer.Files{Index: f.index, Objects: sources[0], Events: sources[1:], Dates: dates, Now: time.Now(),
		Prepare: f.prepare, SignedIn: f.signIns}
	files.Objects.AsObjects(f.written.Objects())
	for _, src := range files.Events {
		src.As(f.written.Events())
	}
	if files.Index == "" {
		files.Index = command.FirstIndex(files.Events[0])
		f.index = files.Index
	}
	if log, f.leftOut, err = importer.ReadLog(ctx, files, t.Err); err == nil && f.baseline != "" {
		err = f.readBaseline(ctx, t, log)
	}
	return log, err
}

// readBaseline adds the lists that were shown.
func (f *logFiles) readBaseline(ctx context.Context, t *command.Tool, log *backtest.Log) (err error) {
	src, err := importer.Open(f.baseline, t.In)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	lines, unknown := 0, 0
	err = importer.ReadBaseline(ctx, src, t.Err, func(o importer.ShownObject) {
		lines++
		if !log.AddBaseline(o.Placement, o.ObjectID, o.Position) {
			unknown++
		}
	})
	switch {
	case err != nil:
		return fmt.Errorf("read --baseline: %w", err)
	case unknown == lines:
		return fmt.Errorf("--baseline %s: the catalog holds none of the objects of its %s", f.baseline,
			cli.Count(lines, "line"))
	case unknown > 0:
		fmt.Fprintf(t.Err, "%s: %d of %s name objects that the catalog does not hold\n", cli.Printable(f.baseline), unknown,
			cli.Count(lines, "line"))
	}
	return nil
}

// unmatched says which lists of --baseline are of no page that was judged.
func (f *logFiles) unmatched(t *command.Tool, log *backtest.Log, r *backtest.Report) {
	within := r.API().Within
	if within == nil || f.baseline == "" {
		return
	}
	if left := log.Unmatched(within.Facet); len(left) > 0 {
		const most = 5
		fmt.Fprintf(t.Err, "%s: %s is no value of %s, so it ranks no case by itself: %s\n", cli.Printable(f.baseline),
			cli.Count(len(left), "placement"), cli.Printable(within.Facet),
			cli.Printable(strings.Join(left[:min(len(left), most)], ", ")))
	}
}

// judged ends a command that has printed its figures: err, or what they leave out.
func (f *logFiles) judged(err error) error {
	if err != nil || f.leftOut == 0 {
		return err
	}
	return cli.WithCode(importer.LeftOutError(f.leftOut), command.ExitLines)
}

// judgeFlags say how to judge.
type judgeFlags struct {
	backtest.Options
	protocol string
}

// flags defines the flags. does says what the command does within the facet.
func (f *judgeFlags) flags(cmd *cobra.Command, does string) {
	flags := cmd.Flags()
	flags.StringVar(&f.protocol, "protocol", string(backtest.Last),
		"last: a user's last instant is a case; rolling: every instant after the cut")
	flags.IntVar(&f.At, "at", backtest.DefaultAt, "length of the list that nDCG, hit rate and coverage look at")
	flags.StringVar(&f.Within, "within", "", does+" among the objects that share a value of this facet with what the user turned to,\n"+
		"as a page shows them; none: among all objects alone (default: the facet that looks like\n"+
		"the category)")
	flags.IntVar(&f.Sample, "sample", 0, "judge so many cases, the same ones each time (default: all)")
}

func (f *judgeFlags) parse(cmd *cobra.Command) error {
	f.Protocol = backtest.Protocol(f.protocol)
	switch {
	case f.Protocol != backtest.Last && f.Protocol != backtest.Rolling:
		return cli.Usagef("--protocol %s: must be last or rolling", f.protocol)
	case f.At < 1 || f.At > backtest.MaxAt:
		return cli.Usagef("--at %d: must be from 1 to %d", f.At, backtest.MaxAt)
	case cmd.Flags().Changed("sample") && f.Sample < 1:
		return cli.Usagef("--sample %d: must be 1 or more", f.Sample)
	case cmd.Flags().Changed("within") && f.Within == "":
		return cli.Usagef("--within must name a facet")
	}
	return nil
}

// parseLive checks the files of a command that judges or searches on the log of an
// engine: it takes none.
func (f *logFiles) parseLive(args []string, does string) error {
	if len(args) > 0 || f.objects != "" || f.baseline != "" || f.written.Given() {
		return cli.Usagef("--url %s on the engine's log: leave out --objects, --baseline and EVENTS with their form, "+
			"or --url", does)
	}
	if f.index == "" {
		f.index = command.DefaultIndex
	}
	return nil
}
