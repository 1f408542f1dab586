package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/affinityengine/affinity/scripts/bench/measure"
)

// benchmark is one measurement on the command line.
type benchmark struct {
	name, short, long, example string
	// define adds the flags and returns the measurement that they configure.
	define func(*pflag.FlagSet) (measurement, *measure.Common)
}

type measurement func(context.Context, measure.Starter) (report, error)

// of adapts a measurement's Run, whose report has a type of its own.
func of[R report](o interface {
	Run(context.Context, measure.Starter) (R, error)
}) measurement {
	return func(ctx context.Context, start measure.Starter) (report, error) { return o.Run(ctx, start) }
}

const repeatUsage = "runs of each measurement; the median counts"

var commands = []benchmark{{
	name:  "recompute",
	short: "Recompute all profiles from histories, from the log and from narrow rows",
	long: "Make users with events, load them in the form that each reader reads, and recompute all profiles, once without\n" +
		"and once with writing them. --events takes a list: each number of events a user is a data set of its own. The real\n" +
		"data sets of --data follow. Every profile is checked: a reader that computes a wrong one fails the command.\n" +
		"--floor also receives the same rows and decodes nothing.\n" +
		"With --dir the data are on disk and grow to each of --totals: the engine imports the users, folds their histories, and\n" +
		"recomputes all profiles with nothing of them in memory. It needs about 1.5 kB an event, and goes on where an earlier\n" +
		"run ended.\n" +
		"  narrow       published schema: a row per event, one cell of JSON, encoding/json\n" +
		"  narrow-fast  the same rows, read by the engine\n" +
		"  wide         the engine's log, the server filters the columns\n" +
		"  wide-client  the engine's log, whole rows, the client filters the columns\n" +
		"  history      the engine's recompute: user rows, blocks, and events outside them",
	example: "  affinity bench recompute\n" +
		"  affinity bench recompute --users 2000 --events 500 --data= --json\n" +
		"  affinity bench recompute --dir /data/bench --totals 1000000,5000000,25000000 --events 7,500\n" +
		"  affinity bench recompute --events 7,30 --readers narrow,narrow-fast,wide,wide-client,history --floor",
	define: func(flags *pflag.FlagSet) (measurement, *measure.Common) {
		o := &measure.Recompute{}
		flags.IntVar(&o.Users, "users", 0, "users of each synthetic data set (default: as many as have 140,000 "+
			"events together)")
		flags.IntSliceVar(&o.Events, "events", []int{7, 30, 100, 500}, "events a user, over 90 days: a data set for each")
		flags.IntVar(&o.Facets, "facets", 8, "facets per event")
		flags.IntVar(&o.Values, "values", 2, "maximum values per facet and event; the minimum is 1")
		flags.IntVar(&o.Selected, "selected", 3, "facets that the strategy scores")
		flags.StringSliceVar(&o.Readers, "readers", []string{measure.Narrow, measure.History}, "readers to measure")
		flags.StringVar(&o.Data, "data", besideCheckout(),
			"directory of real data sets: a folder for each, with events, objects and a strategy; empty for none")
		flags.BoolVar(&o.Floor, "floor", false, "also measure how long it takes to receive the same rows and decode nothing")
		flags.IntVar(&o.Tail, "tail", 0, "newest events of each user that are not folded yet")
		flags.IntVar(&o.Repeat, "repeat", 3, repeatUsage)
		flags.StringVar(&o.CPUProfile, "cpuprofile", "", "file for a CPU profile (pprof) of the last reader's recomputes")
		g := &measure.Growth{}
		flags.StringVar(&g.Dir, "dir", "", "folder for data on disk: measure --totals there, and nothing else")
		flags.IntSliceVar(&g.Totals, "totals", []int{1_000_000, 5_000_000, 25_000_000},
			"events of all users: each is a size that the data in --dir grow to")
		return func(ctx context.Context, start measure.Starter) (report, error) {
			if g.Dir == "" {
				return o.Run(ctx, start)
			}
			g.Recompute = *o
			return g.Run(ctx, start)
		}, &o.Common
	},
}, {
	name:  "peers",
	short: "Compute the same profiles with DuckDB and PostgreSQL",
	long: "Make users with events, recompute and store all profiles from histories, and have DuckDB and PostgreSQL compute and\n" +
		"store the same profiles from the same events, with as many threads. All values are compared with the engine's. Each\n" +
		"database has its events in memory, in a table of texts and then in one of numbers. DuckDB is its command line tool, or\n" +
		"scripts/bench/duckdb/duckdb.mjs after `npm install` there. PostgreSQL is a cluster of its own, which is then removed.\n" +
		"A line says what is not installed.",
	example: "  affinity bench peers\n" +
		"  affinity bench peers --events 500 --users 2000 --duckdb scripts/bench/duckdb/duckdb.mjs",
	define: func(flags *pflag.FlagSet) (measurement, *measure.Common) {
		o := &measure.Peers{}
		flags.IntVar(&o.Users, "users", 0, "users of each data set (default: as many as have 140,000 events together)")
		flags.IntSliceVar(&o.Events, "events", []int{100, 500}, "events a user, over 90 days: a data set for each")
		flags.IntVar(&o.Repeat, "repeat", 3, repeatUsage)
		flags.StringVar(&o.DuckDB, "duckdb", "duckdb", "DuckDB's command line tool")
		flags.StringVar(&o.Postgres, "postgres", "",
			"directory of PostgreSQL's programs (default: that of Debian's newest, or on the PATH)")
		return of(o), &o.Common
	},
}, {
	name:  "schemas",
	short: "Compare the schemas of the log, from few users with many events to many users with few",
	long: "Make users with events, write them in each schema, and build all profiles from it. The profiles are then written\n" +
		"once and checked against the formula. The report has time, bytes received, the client's processor time and\n" +
		"memory, and the size of the tables.\n" +
		"Schemas:\n" +
		"  narrow-json, narrow-compact  one cell per event, received whole\n" +
		"  narrow-proto, narrow-gob     the same with values in encodings that no app can have\n" +
		"  wide-json, wide-compact      one cell per facet, the server filters the columns\n" +
		"  wide-client                  the rows of wide-compact, whole, the client filters the columns\n" +
		"  history                      the engine's packed histories, which exist beside either log\n" +
		"Scenarios: few, some, many and most have 2, 25, 250 and 2500 users with a growing number of events; shape has a\n" +
		"growing number of users with 500 events each. --out writes results.csv and a plot of each scenario,\n" +
		"SCENARIO.svg, to a directory; without it no file is written. functions/docs/design/schemas.md explains the results.",
	example: "  affinity bench schemas --out bench-schemas\n" +
		"  affinity bench schemas --scenarios shape --counts 10000 --repeat 1\n" +
		"  affinity bench schemas --scenarios few,most --schemas narrow-json,history --scale 10",
	define: func(flags *pflag.FlagSet) (measurement, *measure.Common) {
		o := &measure.Schemas{}
		flags.StringSliceVar(&o.Scenarios, "scenarios", []string{"few", "some", "many", "most"}, "scenarios to measure")
		flags.StringSliceVar(&o.Schemas, "schemas", measure.CompareSchemas, "schemas to measure")
		flags.IntSliceVar(&o.Counts, "counts", []int{2500, 5000, 10000, 20000}, "events of all users together, ascending")
		flags.IntVar(&o.Scale, "scale", 1, "factor for users and events")
		flags.IntVar(&o.Facets, "facets", 8, "facets per event")
		flags.IntVar(&o.Values, "values", 2, "maximum values per facet and event; the minimum is 1")
		flags.IntVar(&o.Selected, "selected", 3, "facets that the strategy scores")
		flags.IntVar(&o.Repeat, "repeat", 3, repeatUsage)
		flags.StringVar(&o.Out, "out", "", "directory for results.csv and the plots; created if missing")
		return of(o), &o.Common
	},
}, {
	name:  "backfill",
	short: "Measure how fast a migration copies a log from narrow to wide rows",
	long: "Run the backfill of a migration from narrow to wide rows without a limit, and verify it. For comparison, read the\n" +
		"narrow rows and then write prepared wide ones; and copy the narrow rows as they are, which writes less than a\n" +
		"backfill. The report also has how many events per second one core converts in memory.",
	define: func(flags *pflag.FlagSet) (measurement, *measure.Common) {
		o := &measure.Backfill{}
		flags.IntVar(&o.Users, "users", 1000, "users")
		flags.IntVar(&o.Events, "events", 100, "events per user, over 90 days")
		flags.IntVar(&o.Repeat, "repeat", 3, repeatUsage)
		return of(o), &o.Common
	},
}, {
	name:  "heap",
	short: "Measure the memory of one recompute of very many users",
	long: "Recompute users with short histories in one call and write the profiles, first for a tenth of the users and then\n" +
		"for all, and report the largest heap. A million users take some minutes, and 15 GB for the server.",
	define: func(flags *pflag.FlagSet) (measurement, *measure.Common) {
		o := &measure.Heap{}
		flags.IntVar(&o.Users, "users", 1_000_000, "users")
		flags.IntVar(&o.Events, "events", 20, "events per user")
		return of(o), &o.Common
	},
}, {
	name:  "event",
	short: "Measure one new event of a user with a long history",
	long: "Give one user a history, and then new events, one by one. Report what one costs until the profile is stored: if it\n" +
		"is computed from blocks and log, if the event is added to the profile in the user's row, and if it is added to\n" +
		"what the same process has written. Requests and rows are those that the server counts.",
	example: "  affinity bench event\n" +
		"  affinity bench event --events 100000 --repeat 50 --json",
	define: func(flags *pflag.FlagSet) (measurement, *measure.Common) {
		o := &measure.Event{}
		flags.IntSliceVar(&o.Events, "events", []int{100, 1_000, 10_000, 100_000},
			"events of the user, over 90 days; each is a measurement")
		flags.IntVar(&o.Repeat, "repeat", 30, "new events of each kind")
		return of(o), &o.Common
	},
}, {
	name:  "rank",
	short: "Measure the order of candidates for a user",
	long: "Order candidates of an index for one user, with the handler of POST /1/rank in process: the candidates and\n" +
		"statistics in memory, and with nothing in memory. The statistics have the most pairs that an object can have.",
	example: "  affinity bench rank\n" +
		"  affinity bench rank --candidates 5000 --json",
	define: func(flags *pflag.FlagSet) (measurement, *measure.Common) {
		o := &measure.Rank{}
		flags.IntVar(&o.Candidates, "candidates", 1000, "candidates of a request")
		flags.IntVar(&o.Affinities, "affinities", 200, "affinities of the user")
		flags.IntVar(&o.Requests, "requests", 1000, "warm requests of each kind")
		flags.IntVar(&o.Cold, "cold", 200, "cold requests")
		flags.StringVar(&o.CPUProfile, "cpuprofile", "", "file for a CPU profile (pprof) of the warm requests")
		return of(o), &o.Common
	},
}, {
	name:  "read",
	short: "Measure a read that computes the profile",
	long:  "Read profiles that must be computed from histories, one by one, and report the time beyond the reads of rows.",
	define: func(flags *pflag.FlagSet) (measurement, *measure.Common) {
		o := &measure.Read{}
		flags.IntVar(&o.Events, "events", 500, "events of each user read")
		flags.IntVar(&o.Reads, "reads", 5000, "number of reads")
		return of(o), &o.Common
	},
}, {
	name:  "noisy",
	short: "Measure what an app that sends too much takes from another",
	long: "Start a local engine with two apps. One sends more events than its limit. The other sends few, and each is timed\n" +
		"from when it was due until a profile shows it, without and with the noise. All run in this process.",
	example: "  affinity bench noisy\n" +
		"  affinity bench noisy --events-per-second 300",
	define: func(flags *pflag.FlagSet) (measurement, *measure.Common) {
		o := &measure.Noisy{}
		flags.IntVar(&o.EventsPerSecond, "events-per-second", 0,
			"limit of the app that sends too much, 0 for the engine's default")
		flags.Float64Var(&o.Rate, "rate", 4600, "events per second that it sends")
		flags.IntVar(&o.Batch, "batch", 46, "events of each of its requests")
		flags.DurationVar(&o.Duration, "for", 10*time.Second, "how long it sends")
		flags.DurationVar(&o.Idle, "idle", 10*time.Second, "how long the other app is timed before")
		flags.Float64Var(&o.Probes, "probes", 20, "events of the other app per second")
		return of(o), &o.Common
	},
}, {
	name:  "hot",
	short: "Measure users with ten events a second",
	long: "Start a local engine and send it the events of a few users at a high rate, each in a request of its own. The report\n" +
		"has the time from an event to the profile that shows it, what the Bigtable server sent and was asked for each event,\n" +
		"and what the engine's caches did. The warm-up fills the minute in which folds leave events alone. All run " +
		"in this process.",
	example: "  affinity bench hot\n" +
		"  affinity bench hot --users 10 --rate 20 --warm 5s --for 20s --json",
	define: func(flags *pflag.FlagSet) (measurement, *measure.Common) {
		o := &measure.Hot{}
		flags.IntVar(&o.Users, "users", 50, "users")
		flags.Float64Var(&o.Rate, "rate", 10, "events of each user per second")
		flags.DurationVar(&o.Warm, "warm", 60*time.Second, "how long events are sent before the measurement")
		flags.DurationVar(&o.Duration, "for", 30*time.Second, "how long events are measured")
		flags.IntVar(&o.Sample, "sample", 7, "one of so many events is timed")
		return of(o), &o.Common
	},
}, {
	name:  "sync",
	short: "Measure what it costs that answers wait for the disk",
	long: "Start engines with new folders, with and without --sync of `affinity serve` in turns. To each, connections\n" +
		"send events as fast as they are answered, one a request, and then events come at a fixed rate. The report\n" +
		"has the events answered per second, and the time from when an event was due to its answer. All run in\n" +
		"this process.",
	example: "  affinity bench sync\n" +
		"  affinity bench sync --dir /var/lib --repeat 5 --json",
	define: func(flags *pflag.FlagSet) (measurement, *measure.Common) {
		o := &measure.Sync{}
		flags.StringVar(&o.Dir, "dir", "", "folder on the disk to measure (default: that of temporary files)")
		flags.IntVar(&o.Connections, "connections", 100, "connections that send as fast as they are answered")
		flags.Float64Var(&o.Rate, "rate", 500, "events per second of the fixed rate")
		flags.DurationVar(&o.Duration, "for", 10*time.Second, "how long each is measured")
		flags.IntVar(&o.Repeat, "repeat", 3, "engines of each kind; the median of the events per second counts")
		return of(o), &o.Common
	},
}, {
	name:  "backup",
	short: "Measure what a backup under way costs the answers to events",
	long: "Fill an engine with --sync, and send it events at a fixed rate, with and without backups under way in\n" +
		"turns. A backup is a full copy, and the next one begins at once. The report has the time from when an event\n" +
		"was due to its answer. All run in this process.",
	example: "  affinity bench backup\n" +
		"  affinity bench backup --dir /var/lib --events 1000000 --json",
	define: func(flags *pflag.FlagSet) (measurement, *measure.Common) {
		o := &measure.Backup{}
		flags.StringVar(&o.Dir, "dir", "", "folder on the disk to measure (default: that of temporary files)")
		flags.IntVar(&o.Events, "events", 200_000, "events in the folder before")
		flags.Float64Var(&o.Rate, "rate", 500, "events per second of the fixed rate")
		flags.DurationVar(&o.Duration, "for", 10*time.Second, "how long each is measured")
		flags.IntVar(&o.Repeat, "repeat", 3, "runs with and without backups, each")
		return of(o), &o.Common
	},
}, {
	name:  "guard",
	short: "Count how often tuning recommends a strategy where nothing can help",
	long: "Replace the relevant objects of past cases by as many that are drawn uniformly from each case's candidates, tune,\n" +
		"and count in how many runs the result is recommended. On such cases one strategy is better than another by chance\n" +
		"alone. Each run draws cases, relevant objects and the search of its own. The cases are every instant after the cut of\n" +
		"the given files, or of the simulated shop of `affinity demo`.",
	example: "  affinity bench guard --runs 200 --trials 60 --cases 500\n" +
		"  affinity bench guard --objects objects.ndjson.gz --strategy strategy.json --events events.ndjson.gz",
	define: func(flags *pflag.FlagSet) (measurement, *measure.Common) {
		o := &measure.Guard{}
		flags.IntVar(&o.Runs, "runs", 200, "searches")
		flags.IntVar(&o.Trials, "trials", 60, "strategies that each search judges")
		flags.IntVar(&o.Cases, "cases", 500, "cases of each search")
		flags.Uint64Var(&o.Seed, "seed", 1, "seed of the first search; the others count up")
		flags.StringVar(&o.Index, "index", "products", "index of the objects, and of events that name none")
		flags.StringVar(&o.Objects, "objects", "", "catalog: one JSON object per line, plain or gzip")
		flags.StringVar(&o.Strategy, "strategy", "", "strategy that each search begins with: a JSON file")
		flags.StringArrayVar(&o.Events, "events", nil, "events: one JSON event per line, plain or gzip; repeatable")
		return of(o), &o.Common
	},
}}

// besideCheckout is where real data may lie beside the checkout that the command runs
// in, and "" elsewhere.
func besideCheckout() string {
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(filepath.Dir(dir), "shared", "data")
		}
		dir = filepath.Dir(dir)
	}
	return ""
}
