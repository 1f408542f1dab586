package apply

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/deadline"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// endTimeout limits the write of the end of a delivery. It begins when the work has
	// ended, also if the time of the request is over: the mark belongs to no app and no
	// user, so nobody waits for its last write.
	endTimeout = 10 * time.Second
	// repaidAtOnce is how many ends that could not be written a delivery writes after its
	// own, which has shown that the store answers.
	repaidAtOnce = 4
	// maxMarks is how many marks a process remembers. Of more, it forgets to write the end:
	// other processes then take each for a delivery that left no answer.
	maxMarks = 10_000
)

// marks are the marks of deliveries that this process has begun and not ended. The zero
// value is ready.
type marks struct {
	once    sync.Once
	process string // a random id that begins the names of its deliveries
	last    atomic.Int64

	mu   sync.Mutex
	open map[string]mark // by the name of the delivery
}

type mark struct {
	message string
	over    bool // the delivery has ended, and the store does not know
	// end is how it ended. Empty: the message is acknowledged, and its marks are removed.
	end store.DeliveryEnd
}

func (m *marks) id() string {
	m.once.Do(func() { m.process, m.open = rand.Text(), map[string]mark{} })
	return m.process
}

// name returns a name that no other delivery has.
func (m *marks) name() string { return fmt.Sprintf("%s.%d", m.id(), m.last.Add(1)) }

// own reports whether a delivery is of this process.
func (m *marks) own(name string) bool { return strings.HasPrefix(name, m.id()+".") }

// begin remembers that a delivery of a message begins, and returns its name.
func (m *marks) begin(message string) string {
	name := m.name()
	m.put(name, mark{message: message})
	return name
}

// put stores what the process knows of a mark.
func (m *marks) put(name string, k mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k.over && k.end == "" {
		m.drop(k.message) // the write removes them, too
	}
	if _, known := m.open[name]; known || len(m.open) < maxMarks {
		m.open[name] = k
	}
}

// drop forgets the marks of a message whose deliveries are over.
func (m *marks) drop(message string) {
	for name, k := range m.open {
		if k.message == message && k.over {
			delete(m.open, name)
		}
	}
}

// written forgets a mark whose end is written.
func (m *marks) written(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, name)
}

// unwritten returns up to n marks whose delivery is over.
func (m *marks) unwritten(n int) map[string]mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]mark{}
	for name, k := range m.open {
		if len(found) == n {
			break
		}
		if k.over {
			found[name] = k
		}
	}
	return found
}

// end writes that a delivery of a message has ended with an answer, or remembers to.
func (a *Applier) end(message, name string, fate Fate, err error) {
	k := mark{message: message, over: true}
	if fate == "" || fate == Retried {
		k.end = store.DeliveryFailed
		if errors.Is(err, admission.ErrFull) {
			k.end = store.DeliveryEnded
		}
	}
	a.marks.put(name, k)
	ctx, cancel := deadline.Begin(context.Background(), endTimeout)
	defer cancel()
	if a.writeEnd(ctx, name, k) != nil {
		return // a later delivery writes it
	}
	for name, k := range a.marks.unwritten(repaidAtOnce) {
		if a.writeEnd(ctx, name, k) != nil {
			return
		}
	}
}

func (a *Applier) writeEnd(ctx context.Context, name string, k mark) error {
	write := a.Store.Users.ForgetDeliveries
	if k.end != "" {
		write = func(ctx context.Context, message string) error {
			return a.Store.Users.EndDelivery(ctx, message, name, k.end)
		}
	}
	err := write(ctx, k.message)
	if err == nil {
		a.marks.written(name)
	}
	return err
}

// Flush ends the marks of all deliveries of the process, before it exits. Those that run
// count as failed: the exit ends them.
func (a *Applier) Flush(ctx context.Context) error {
	a.marks.mu.Lock()
	open := make(map[string]mark, len(a.marks.open))
	for name, k := range a.marks.open {
		if !k.over {
			k.end = store.DeliveryFailed
		}
		open[name] = k
	}
	a.marks.mu.Unlock()
	var errs []error
	for name, k := range open {
		errs = append(errs, a.writeEnd(ctx, name, k))
	}
	return errors.Join(errs...)
}
