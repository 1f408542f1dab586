package stack

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/affinityengine/affinity/shared/local/emulator"
)

// archivePatience is how long Close waits until the messages of a topic are archived.
const archivePatience = 10 * time.Second

// archiveSubscription is the subscription of a topic that writes the archive.
func archiveSubscription(topic string) string { return topic + "-archive" }

// archive writes the messages of a topic to files in a folder of its name, as the
// deployment's subscription does. It stops after the functions, which publish.
func (s *Stack) archive(ctx context.Context, m messaging, topic, folder string, log *slog.Logger) error {
	subscription := archiveSubscription(topic)
	if err := createTopic(ctx, m.client, topic, subscription); err != nil {
		return err
	}
	a := emulator.StartArchive(m.client, subscriptionName(subscription), filepath.Join(folder, topic), log)
	s.archived = append(s.archived, subscriptionName(subscription))
	s.onClose(func() error {
		if s.pubsub != nil { // an official emulator keeps what is not archived
			ctx, cancel := context.WithTimeout(context.Background(), archivePatience)
			defer cancel()
			if err := s.pubsub.Idle(ctx, subscriptionName(subscription)); err != nil {
				log.Error("the archive lacks messages", "subscription", subscription, "error", err)
			}
		}
		return a.Close()
	})
	return nil
}
