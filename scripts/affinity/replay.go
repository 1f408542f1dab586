package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/deadletter"
	"github.com/affinityengine/affinity/shared/bus"
)

func replayCommand(t *tool) *cobra.Command {
	o, dryRun := deadletter.Options{}, false
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Put dead letters back: messages of events that process could not apply",
		Long: "Print each message of the dead-letter subscription and publish it on the events topic as it was. A message leaves\n" +
			"the subscription only once the topic has it; events count once, however often they are put back. Without --project\n" +
			"and PUBSUB_EMULATOR_HOST the command works on the local stack at --url.",
		Example: "  affinity replay --dry-run\n  affinity replay --project my-project",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Topic == "" || o.Subscription == "" {
				return cli.Usagef("--topic and --dead-letter-subscription must not be empty")
			}
			letters, err := openDeadLetters(cmd, t, o)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, letters.Close()) }()
			if dryRun {
				return letters.List(cmd.Context())
			}
			return letters.Replay(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&dryRun, "dry-run", false, "print the messages and leave them where they are")
	flags.StringVar(&o.Project, "project", "", "Google Cloud project (default: the local stack at --url)")
	flags.StringVar(&o.Topic, "topic", bus.EventsTopic, "topic to publish the messages on")
	flags.StringVar(&o.Subscription, "dead-letter-subscription", bus.DeadLetterSubscription, "subscription that holds the dead letters")
	return cmd
}

// openDeadLetters finds the Pub/Sub to work on. Flags that were given override
// what the local stack answers.
func openDeadLetters(cmd *cobra.Command, t *tool, o deadletter.Options) (*deadletter.Queue, error) {
	ctx := cmd.Context()
	if o.Project != "" {
		return deadletter.Open(ctx, o, t.out)
	}
	if os.Getenv("PUBSUB_EMULATOR_HOST") != "" {
		o.Project = cmp.Or(os.Getenv("GOOGLE_CLOUD_PROJECT"), "affinity-local")
		return deadletter.Open(ctx, o, t.out)
	}
	local, err := askLocalStack(ctx, t)
	if err != nil {
		return nil, err
	}
	o.Project = local.Project
	if !cmd.Flags().Changed("topic") {
		o.Topic = cmp.Or(local.EventsTopic, o.Topic)
	}
	if !cmd.Flags().Changed("dead-letter-subscription") {
		o.Subscription = cmp.Or(local.DeadLetterSubscription, o.Subscription)
	}
	return deadletter.Open(ctx, o, t.out, option.WithEndpoint(local.PubSub), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
}

// localPubSub is the answer of GET /local, a route of the local stack only.
type localPubSub struct {
	PubSub                 string `json:"pubsub"` // host:port
	Project                string `json:"project"`
	EventsTopic            string `json:"eventsTopic"`
	DeadLetterSubscription string `json:"deadLetterSubscription"`
}

func askLocalStack(ctx context.Context, t *tool) (localPubSub, error) {
	var local localPubSub
	c, err := t.client()
	if err != nil {
		return local, err
	}
	answer, err := c.Do(ctx, http.MethodGet, "/local", nil)
	if err != nil {
		return local, fmt.Errorf("ask the local stack for its dead letters: %w (for a deployed engine give --project)", err)
	}
	if err := json.Unmarshal(answer, &local); err != nil || local.PubSub == "" || local.Project == "" {
		return local, fmt.Errorf("the engine at %s does not name its Pub/Sub: give --project", c.URL())
	}
	return local, nil
}
