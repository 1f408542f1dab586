package emulator

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"github.com/googleapis/gax-go/v2"
)

// Archive emulates a Cloud Storage subscription that writes text: it appends the data
// of each message of a subscription, and a line break, to a file. It begins a file at
// its first message, and another one after a write that failed. A message is acknowledged
// once its write has returned, so the end of the process loses none of these.
type Archive struct {
	subscription string
	folder       string
	log          *slog.Logger
	stop         context.CancelFunc
	done         chan struct{} // closed when receiving has ended

	mu   sync.Mutex
	file *os.File // nil: none is open
}

// StartArchive starts to write the messages of a subscription (full name) to files in a
// folder, which it makes with the first one. The caller keeps the client and must close
// it after the Archive.
func StartArchive(client *pubsub.Client, subscription, folder string, log *slog.Logger) *Archive {
	ctx, stop := context.WithCancel(context.Background())
	a := &Archive{subscription: subscription, folder: folder, log: log, stop: stop, done: make(chan struct{})}
	subscriber := client.Subscriber(subscription)
	subscriber.ReceiveSettings.MaxOutstandingBytes = unsettledBytes
	go a.receive(ctx, subscriber)
	return a
}

func (a *Archive) receive(ctx context.Context, subscriber *pubsub.Subscriber) {
	defer close(a.done)
	for {
		err := subscriber.Receive(ctx, func(_ context.Context, m *pubsub.Message) {
			if err := a.write(m.Data); err != nil {
				a.log.Error("a message is not archived, trying again", "subscription", a.subscription, "error", err)
				m.Nack()
				return
			}
			m.Ack()
		})
		if ctx.Err() != nil {
			return
		}
		a.log.Error("pulling failed, trying again", "subscription", a.subscription, "error", err)
		if gax.Sleep(ctx, time.Second) != nil {
			return
		}
	}
}

// write appends a message in one request to the system, so that the end of the process
// leaves it whole, or out, or at worst cut short at the end of the file.
func (a *Archive) write(data []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		if err := a.create(); err != nil {
			return err
		}
	}
	if _, err := a.file.Write(append(data[:len(data):len(data)], '\n')); err != nil {
		_ = a.file.Close() // the error is known
		a.file = nil
		return fmt.Errorf("write the archive: %w", err)
	}
	return nil
}

// create makes a file with a name as Pub/Sub gives it: its time and a random part.
func (a *Archive) create() error {
	if err := os.MkdirAll(a.folder, 0o700); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	name := time.Now().UTC().Format("2006-01-02T15_04_05Z") + "_" + rand.Text()[:8] + ".ndjson"
	// Only its owner may read it: it is about persons.
	file, err := os.OpenFile(filepath.Join(a.folder, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	a.file = file
	return nil
}

// Close stops writing, after the messages that are being written.
func (a *Archive) Close() error {
	a.stop()
	select {
	case <-a.done:
	case <-time.After(usualCloseTimeout):
		a.log.Warn("Pub/Sub is unreachable and may deliver archived messages again", "subscription", a.subscription)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}
