package events

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/deadletter"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/local/emulator"
)

// Replay returns the command replay.
func Replay(t *command.Tool) *cobra.Command {
	o, dryRun := deadletter.Options{}, false
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Put dead letters back: messages of events that process could not apply",
		Long: "Print each message of the dead-letter subscription and publish it on the events topic as it was. A message leaves\n" +
			"the subscription only once the topic has it; events count once, however often they are put back.\n" +
			"Exit 1 if a message failed again while the command ran. Without --project, a context with a deployment and " +
			"PUBSUB_EMULATOR_HOST\n" +
			"the command works on the engine of `affinity up` at --url, with its operator's token in\n" +
			"AFFINITY_OPERATOR.",
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
	flags.StringVar(&o.Project, "project", "", "Google Cloud project (default: that of the context, or the local "+
		"stack at --url)")
	flags.StringVar(&o.Topic, "topic", bus.EventsTopic, "topic to publish the messages on")
	flags.StringVar(&o.Subscription, "dead-letter-subscription", bus.DeadLetterSubscription,
		"subscription that holds the dead letters")
	return cmd
}

// openDeadLetters finds the Pub/Sub to work on. Flags that were given override
// what the local stack answers.
func openDeadLetters(cmd *cobra.Command, t *command.Tool, o deadletter.Options) (*deadletter.Queue, error) {
	ctx := cmd.Context()
	if t.Deployment != nil {
		o.Project = cmp.Or(o.Project, t.Deployment.Project)
	}
	if o.Project != "" {
		return deadletter.Open(ctx, o, t.Out)
	}
	if os.Getenv("PUBSUB_EMULATOR_HOST") != "" {
		o.Project = cmp.Or(os.Getenv("GOOGLE_CLOUD_PROJECT"), "affinity-local")
		return deadletter.Open(ctx, o, t.Out)
	}
	c, err := command.OperatorClient(t)
	if err != nil {
		return nil, err
	}
	place, err := c.Place(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the local stack for its dead letters: %w", err)
	}
	o.Project = place.Project
	if !cmd.Flags().Changed("topic") {
		o.Topic = place.EventsTopic
	}
	if !cmd.Flags().Changed("dead-letter-subscription") {
		o.Subscription = place.DeadLetterSubscription
	}
	return deadletter.Open(ctx, o, t.Out, option.WithEndpoint(place.PubSub), option.WithoutAuthentication(),
		option.WithGRPCDialOption(emulator.WithToken(place.Token)),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
}
