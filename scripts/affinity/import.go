package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// defaultIndex is the index of objects and events where nothing names one.
const defaultIndex = "products"

type importOptions struct {
	index, objects, strategy, events string
	retryFor                         time.Duration
}

func (t *tool) importCommand() *cobra.Command {
	o := importOptions{}
	cmd := &cobra.Command{
		Use:   "import [flags] EVENTS",
		Short: "Import a history of events, with its catalogue and strategy",
		Long: "Import EVENTS (one JSON event a line, plain or gzip, - for standard input), after the strategy and the catalogue if given.\n" +
			"Events of any age go in, up to 20 objects each. Bad lines are reported with their number and the rest goes in (exit 3).\n" +
			"Running the same command again is harmless and resumes what broke off: an event that is there already counts once.\n" +
			"The key needs the right admin for events, addObject for objects, recommendation for the strategy.",
		Example: "  affinity import --strategy strategy.json --objects objects.ndjson.gz events.ndjson.gz\n" +
			"  zcat 2026-*.gz | affinity import --index shoes -",
		Args: cli.Args("EVENTS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.events = args[0]
			return t.importAll(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.index, "index", "", "index of the objects, and of events that name none\n"+
		"(default: what the first event names, else "+defaultIndex+")")
	flags.StringVar(&o.objects, "objects", "", "catalogue to import first: one JSON object a line, plain or gzip, - for standard input")
	flags.StringVar(&o.strategy, "strategy", "", "strategy to set first: a JSON file; without personalizationImpact it is sent with 50")
	flags.DurationVar(&o.retryFor, "retry-for", t.wait.total, "how long to try again when the engine is busy or away")
	return cmd
}

// importAll runs the command: strategy, objects, events, in this order, so that events find their objects and count under the strategy.
func (t *tool) importAll(ctx context.Context, o importOptions) (err error) {
	c, err := t.client()
	if err != nil {
		return err
	}
	if o.retryFor <= 0 {
		return cli.Usagef("--retry-for %s: must be more than 0", o.retryFor)
	}
	if o.objects == "-" && o.events == "-" {
		return cli.Usagef("--objects and EVENTS cannot both be standard input")
	}
	strategy, objects, events, err := t.openAll(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(objects, events)) }()
	defer context.AfterFunc(ctx, func() { interruptAll(ctx.Err(), objects, events) })()

	wait := t.wait
	wait.total = o.retryFor
	im := &importer{c: c, wait: wait, bad: &badLines{}}
	if strategy != nil {
		err := wait.retry(ctx, t.waiting, func() error { return setStrategy(ctx, c, strategy) })
		if err != nil {
			return fmt.Errorf("set the strategy: %w", err)
		}
	}
	return t.sendData(ctx, im, objects, events, t.indexFor(o, objects, events))
}

// openAll opens every file before anything is sent. What no flag names is nil.
func (t *tool) openAll(o importOptions) (strategy []byte, objects, events *source, err error) {
	if o.strategy != "" {
		if strategy, err = t.readStrategy(o.strategy); err != nil {
			return nil, nil, nil, err
		}
	}
	if o.objects != "" {
		if objects, err = t.openSource(o.objects); err != nil {
			return nil, nil, nil, err
		}
	}
	if events, err = t.openSource(o.events); err != nil {
		return nil, nil, nil, errors.Join(err, closeAll(objects))
	}
	return strategy, objects, events, nil
}

func closeAll(sources ...*source) error {
	var err error
	for _, s := range sources {
		if s != nil {
			err = errors.Join(err, s.close())
		}
	}
	return err
}

func interruptAll(err error, sources ...*source) {
	for _, s := range sources {
		if s != nil {
			s.interrupt(err)
		}
	}
}

// indexFor decides the index. Objects must lie where the events look for them, so an index that the events name goes before the default.
func (t *tool) indexFor(o importOptions, objects, events *source) string {
	if o.index != "" {
		return o.index
	}
	index := defaultIndex
	if l, err := events.peek(); err == nil { // a fault comes up again when the events are read
		var event struct {
			Index string `json:"index"`
		}
		if err := json.Unmarshal(l.text, &event); err == nil && event.Index != "" {
			index = event.Index
		}
	}
	if objects != nil {
		fmt.Fprintf(t.err, "objects go to the index %q (--index names another)\n", cli.Printable(index))
	}
	return index
}

func (t *tool) sendData(ctx context.Context, im *importer, objects, events *source, index string) error {
	begun := time.Now()
	stored := 0
	if objects != nil {
		m := newMeter(t.err, "objects", objects)
		var err error
		stored, err = im.objects(ctx, objects, m, index)
		m.finish()
		if err != nil {
			return fmt.Errorf("%w\n%d objects and no events went in: run the same command again to resume", err, stored)
		}
	}
	eventsBegun := time.Now()
	m := newMeter(t.err, "events", events)
	counts, err := im.events(ctx, events, m, index)
	m.finish()
	if counts.Received > 0 {
		fmt.Fprintf(t.err, "warning: %d events had no usable timestamp and got the time of import; importing them again counts them again\n",
			counts.Received)
	}
	if counts.Outside > 0 {
		fmt.Fprintf(t.err, "warning: %d events are older than the app's retention and count in no profile (are their timestamps in milliseconds?)\n", counts.Outside)
	}
	if counts.Deleted > 0 {
		fmt.Fprintf(t.err, "warning: %d events are of a time that their user is deleted until, and were left out\n", counts.Deleted)
	}
	if err != nil {
		return fmt.Errorf("%w\n%d events went in before that: run the same command again to resume, what is in counts once", err, counts.Accepted)
	}
	with := ""
	if objects != nil {
		with = fmt.Sprintf(" and %d objects", stored)
	}
	fmt.Fprintf(t.out, "imported %d events%s in %.1f s (%.0f events/s)\n", counts.Accepted, with, time.Since(begun).Seconds(),
		perSecond(counts.Accepted, time.Since(eventsBegun)))
	return im.bad.err()
}
