package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"github.com/spf13/cobra"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/bus"
)

type replayOptions struct {
	project, topic, subscription string
	dryRun                       bool
}

func (t *tool) replayCommand() *cobra.Command {
	o := replayOptions{}
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Put dead letters back: messages of events that could not be processed",
		Long: "Print each message of the dead-letter subscription and put it back on the events topic as it was. A message leaves the\n" +
			"subscription only once the topic has it; events count once, however often they are put back. Without --project and\n" +
			"PUBSUB_EMULATOR_HOST it works on the local stack at --url.",
		Example: "  affinity replay --dry-run\n  affinity replay --project my-project",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.topic == "" || o.subscription == "" {
				return cli.Usagef("--topic and --dead-letter-subscription must not be empty")
			}
			return t.replay(cmd.Context(), cmd.Flags().Changed, o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.dryRun, "dry-run", false, "print the messages and leave them where they are")
	flags.StringVar(&o.project, "project", "", "Google Cloud project (default: the local stack at --url)")
	flags.StringVar(&o.topic, "topic", bus.EventsTopic, "topic that the messages go back to")
	flags.StringVar(&o.subscription, "dead-letter-subscription", bus.DeadLetterSubscription, "subscription that holds the dead letters")
	return cmd
}

// localPubSub is where the Pub/Sub of a local stack is, as GET /local tells.
type localPubSub struct {
	PubSub                 string `json:"pubsub"` // host:port
	Project                string `json:"project"`
	EventsTopic            string `json:"eventsTopic"`
	DeadLetterSubscription string `json:"deadLetterSubscription"`
}

// replay finds the Pub/Sub to work on. given tells which flags were: they go before what the local stack says.
func (t *tool) replay(ctx context.Context, given func(string) bool, o replayOptions) (err error) {
	var options []option.ClientOption
	switch {
	case o.project != "":
	case os.Getenv("PUBSUB_EMULATOR_HOST") != "":
		o.project = cmp.Or(os.Getenv("GOOGLE_CLOUD_PROJECT"), "affinity-local")
	default:
		local, err := t.askLocal(ctx)
		if err != nil {
			return err
		}
		o.project = local.Project
		if !given("topic") {
			o.topic = cmp.Or(local.EventsTopic, o.topic)
		}
		if !given("dead-letter-subscription") {
			o.subscription = cmp.Or(local.DeadLetterSubscription, o.subscription)
		}
		options = []option.ClientOption{
			option.WithEndpoint(local.PubSub),
			option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		}
	}
	letters, err := openDeadLetters(ctx, o, options...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, letters.close()) }()
	letters.out = t.out
	if o.dryRun {
		return letters.list(ctx)
	}
	return letters.replay(ctx)
}

func (t *tool) askLocal(ctx context.Context) (localPubSub, error) {
	var local localPubSub
	c, err := t.client()
	if err != nil {
		return local, err
	}
	if err := c.get(ctx, "/local", &local); err != nil {
		return local, fmt.Errorf("ask the local stack for its dead letters: %w (a deployed engine: give --project)", err)
	}
	if local.PubSub == "" || local.Project == "" {
		return local, fmt.Errorf("the engine at %s does not say where its Pub/Sub is: give --project", c.base)
	}
	return local, nil
}

func openDeadLetters(ctx context.Context, o replayOptions, options ...option.ClientOption) (*deadLetters, error) {
	from, err := pubsub.NewSubscriptionAdminClient(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("connect to Pub/Sub for project %s: %w", o.project, err)
	}
	to, err := pubsub.NewTopicAdminClient(ctx, options...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to Pub/Sub for project %s: %w", o.project, err), from.Close())
	}
	return &deadLetters{
		from: from, subscription: fmt.Sprintf("projects/%s/subscriptions/%s", o.project, o.subscription),
		to: to, topic: fmt.Sprintf("projects/%s/topics/%s", o.project, o.topic),
		run: rand.Text(), held: map[string]string{},
	}, nil
}
