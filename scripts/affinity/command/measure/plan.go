package measure

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/plan"
	"github.com/affinityengine/affinity/scripts/affinity/plan/tfvars"
	"github.com/affinityengine/affinity/scripts/affinity/render"
)

// planFlags are the flags of plan that its workload and figures do not hold.
type planFlags struct {
	prices  command.PriceFlags
	billing string
	before  bool
	tfvars  string
}

// Plan returns the command plan.
func Plan(t *command.Tool) *cobra.Command {
	w := plan.Workload{EventsPerRequest: 4, Peak: 3, Clusters: 1, Compression: 1, PackWindowMs: 5, NodeGiB: plan.NodeGiB}
	figures, f := plan.Now, planFlags{}
	cmd := &cobra.Command{
		Use:   "plan --events-per-day N --users N --retention DAYS",
		Short: "Estimate what a deployment needs and costs in a month",
		Long: "Estimate a month of a deployment: Bigtable nodes, storage, messages, tasks, CPU, requests and money; and\n" +
			"of one machine with `affinity serve` in its place, with how many events a day it serves at most. It is\n" +
			"arithmetic on measured figures of the engine and on prices that were read on the dates in\n" +
			"functions/docs/operate/costs.md. No engine is asked. A price that nobody could read is unknown: give it with\n" +
			"--price, or all with --price-file, or it is not in the sum. Without the price of Bigtable's nodes, the main item, there is no sum.",
		Example: "  affinity plan --events-per-day 1e6 --users 200000 --retention 90\n" +
			"  affinity plan --events-per-day 1e8 --users 1e7 --retention 90 --reads-per-second 500 --before \\\n" +
			"    --price bigtable_nodes=0.65 --price bigtable_ssd=0.17",
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.fill(cmd, &w); err != nil {
				return err
			}
			for _, required := range [][2]string{
				{"events-per-day", "how many events clients send on an average day"},
				{"users", "how many users have an event in the retention"},
				{"retention", "for how many days events are kept"},
			} {
				if err := cli.Require(cmd, required[0], required[1]); err != nil {
					return err
				}
			}
			if !cmd.Flags().Changed("reads-per-second") {
				w.ReadsPerSecond = w.EventsPerDay / 86400 / w.EventsPerRequest
			}
			return printPlan(t, w, figures, f)
		},
	}
	flags := cmd.Flags()
	addWorkload(flags, &w, &figures)
	flags.StringVar(&f.billing, "billing", "requests",
		"what Cloud Run bills: requests, instances, or for each function the cheapest (billing in functions of Terraform)")
	flags.StringVar(&f.tfvars, "tfvars", "",
		"file of Terraform's variables: what it keeps, and its values in place of other flags' defaults")
	f.prices.Add(flags)
	flags.BoolVar(&f.before, "before", false,
		"show beside it what the same cost before small histories moved into the user's row")
	t.JSONFlag(cmd, command.JSONDocument)
	return cmd
}

// addWorkload defines the flags of a workload and of figures that depend on it.
func addWorkload(flags *pflag.FlagSet, w *plan.Workload, figures *plan.Figures) {
	flags.Float64Var(&w.EventsPerDay, "events-per-day", 0, "events on an average day")
	flags.Float64Var(&w.Users, "users", 0, "users with an event in the retention")
	flags.Float64Var(&w.RetentionDays, "retention", 0, "days for which events are kept")
	flags.Float64Var(&w.EventsPerRequest, "events-per-request", w.EventsPerRequest,
		"events that a client sends together, all of one user")
	flags.Float64Var(&w.ReadsPerSecond, "reads-per-second", 0,
		"reads of profiles, on average (default: one for each request with events)")
	flags.Float64Var(&w.Peak, "peak", w.Peak, "the busiest minute's load, as a multiple of the average")
	flags.Float64Var(&w.Clusters, "clusters", w.Clusters, "Bigtable clusters, each with all data")
	flags.Float64Var(&w.Customers, "customers", w.Customers,
		"customers with a host and an app of their own, beside the default host")
	flags.Float64Var(&w.Compression, "compression", w.Compression, "by what factor Bigtable compresses rows on disk")
	flags.Float64Var(&w.PackWindowMs, "pack-window-ms", w.PackWindowMs,
		"milliseconds that a request may wait for others of its app, to share a message (pack_window_ms of Terraform)")
	flags.Float64Var(&w.NodeGiB, "storage-target-gib", w.NodeGiB,
		"GiB that a node of Bigtable stores before there is another one (storage_target_gib of Terraform)")
	flags.Float64Var(&w.WarehouseDays, "warehouse-days", 0,
		"days for which BigQuery keeps a row of each event for analysts, without what their queries read (default: none)")
	flags.Float64Var(&figures.RowBytes, "row-bytes", figures.RowBytes,
		"bytes of an event's row of the log (default: wide rows of 12 filters)")
	flags.Float64Var(&figures.BlockBytes, "block-bytes", figures.BlockBytes, "bytes of an event in a history")
	flags.Float64Var(&figures.RequestLogs, "request-logs", figures.RequestLogs,
		"share of healthy requests whose log entry is kept (request_log_sample of Terraform)")
	flags.Float64Var(&figures.MessageLogs, "message-logs", figures.MessageLogs,
		"share of healthy messages whose line is kept (message_log_sample of Terraform)")
	flags.Float64Var(&figures.BalancerLogs, "balancer-logs", figures.BalancerLogs,
		"share of requests that the load balancer logs (balancer_log_sample of Terraform)")
}

// fill takes from the file of Terraform's variables what the flags do not say.
func (f planFlags) fill(cmd *cobra.Command, w *plan.Workload) error {
	if f.tfvars == "" {
		return nil
	}
	if cmd.Flags().Changed("clusters") {
		return cli.Usagef("--clusters and --tfvars exclude each other: %s has the clusters", f.tfvars)
	}
	v, err := tfvars.Read(f.tfvars)
	if err == nil {
		w.Kept, err = v.Kept()
	}
	if err != nil {
		return cli.Usagef("--tfvars %s: %v", f.tfvars, err)
	}
	clusters, customers := float64(len(v.Clusters)), float64(len(v.Customers))
	if !v.Warehouse {
		v.WarehouseDays = nil
	}
	for flag, value := range map[string]*float64{
		"retention": v.LongestRetentionDays, "clusters": &clusters, "customers": &customers, "pack-window-ms": v.PackWindowMs,
		"request-logs": v.RequestLogSample, "message-logs": v.MessageLogSample, "balancer-logs": v.BalancerLogSample,
		"storage-target-gib": v.StorageTargetGiB, "warehouse-days": v.WarehouseDays,
	} {
		if value == nil || cmd.Flags().Changed(flag) {
			continue
		}
		if err := cmd.Flags().Set(flag, strconv.FormatFloat(*value, 'f', -1, 64)); err != nil {
			return fmt.Errorf("set --%s of %s: %w", flag, f.tfvars, err)
		}
	}
	return nil
}

func printPlan(t *command.Tool, w plan.Workload, figures plan.Figures, f planFlags) error {
	if err := w.Check(); err != nil {
		return cli.Usagef("%v", err)
	}
	if err := figures.Check(); err != nil {
		return cli.Usagef("%v", err)
	}
	delivery, ok := map[string]plan.Delivery{
		"requests": plan.Push, "instances": plan.Instances, "cheapest": plan.Cheapest,
	}[f.billing]
	if !ok {
		return cli.Usagef("--billing %s: must be requests, instances or cheapest", f.billing)
	}
	prices, err := f.prices.List()
	if err != nil {
		return err
	}
	answer := plan.Comparison{Now: plan.Compute(w, figures, prices, delivery), Prices: prices,
		Machine: plan.ComputeMachine(w, figures, prices)}
	if f.before {
		earlier := plan.Before
		earlier.RowBytes = figures.RowBytes // the log has not changed
		before := plan.Compute(w, earlier, prices, delivery)
		answer.Before = &before
	}
	if t.JSON {
		return cli.PrintJSON(t.Out, answer)
	}
	if err := render.Plan(t.Out, answer); err != nil {
		return fmt.Errorf("print the plan: %w", err)
	}
	return nil
}
