package disk

import (
	"fmt"
	"sync/atomic"
	"time"
)

// group syncs what many callers have committed with one request to the disk: a commit writes to the log
// without waiting, and who needs it on the disk waits for a later record of the log, which is on the disk once
// all before it is. Pebble syncs the log once for all who wait at the same time. If that fails it
// ends the process, see logger.Fatalf: nobody can know what a later sync would write.
type group struct {
	log       engine       // nil: nobody waits
	committed atomic.Int64 // commits
	synced    atomic.Int64 // of them, the first ones that are on the disk
	ended     chan struct{}
	done      chan struct{}
}

func (g *group) begin(log engine) {
	g.log, g.ended, g.done = log, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(g.done)
		tick := time.NewTicker(syncEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C: // for commits that nobody waits for
				_ = g.Sync() // fails for nobody who waits
			case <-g.ended:
				return
			}
		}
	}()
}

func (g *group) end() {
	if g.log != nil {
		close(g.ended)
		<-g.done
	}
}

// Sync returns nil once a failure of the machine cannot lose what was committed before. It returns at once
// without Settings.Sync.
func (g *group) Sync() error {
	n := g.committed.Load()
	if g.log == nil || g.synced.Load() >= n {
		return nil
	}
	if err := g.log.syncLog(); err != nil {
		return fmt.Errorf("sync the data folder: %w", err)
	}
	for {
		before := g.synced.Load()
		if before >= n || g.synced.CompareAndSwap(before, n) {
			return nil
		}
	}
}
