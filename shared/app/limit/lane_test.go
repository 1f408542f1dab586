package limit_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/limit"
)

// laneTest sends events of an app over its limit, and says that they are applied in
// another process.
type laneTest struct {
	t               *testing.T
	clock           *clock
	board           *board
	ingest, process *limit.Held
	began           time.Time
}

func newLaneTest(t *testing.T) *laneTest {
	c, b := newClock(), &board{}
	all := processes(2, c, b)
	return &laneTest{t, c, b, all[0], all[1], c.at}
}

// to sends some events every half minute until so long after the beginning. full says
// whether the lane then took them.
func (l *laneTest) to(d time.Duration, full bool) {
	l.t.Helper()
	own := limit.Numbers{EventsPerSecond: 10}
	for {
		if _, slow, err := l.ingest.Events("shop", own, 15, l.clock.at); slow || err != nil {
			l.t.Fatalf("after %s: the first request: slow %v, %v", l.clock.at.Sub(l.began), slow, err)
		}
		l.ingest.Flush() // it knows what process has said
		mayErr := l.ingest.MayEvents("shop", own)
		_, slow, err := l.ingest.Events("shop", own, 4, l.clock.at)
		at := l.clock.at.Sub(l.began)
		l.clock.advance(30 * time.Second)
		if at >= d {
			if full && (mayErr == nil || err == nil || !strings.Contains(err.Error(), "slow lane is full")) || !full && (!slow || mayErr != nil || err != nil) {
				l.t.Errorf("after %s: slow %v, %v, %v; want a full lane: %v", at, slow, mayErr, err, full)
			}
			return
		}
	}
}

// applied says that process has applied what was received so long after the beginning.
func (l *laneTest) applied(d time.Duration) {
	l.process.Applied("shop", l.began.Add(d))
	l.process.Flush()
}

// What was applied no longer waits, and an older message that is delivered again
// changes nothing.
func TestAppliedMovesTheLane(t *testing.T) {
	l := newLaneTest(t)
	l.to(9*time.Minute, false)
	l.applied(5 * time.Minute)
	l.to(14*time.Minute, false)
	l.applied(2 * time.Minute)
	l.to(14*time.Minute+30*time.Second, false)
	l.to(16*time.Minute, true)
	l.applied(16 * time.Minute)
	l.to(25*time.Minute, false) // from 16:00 on it waits again
	l.to(27*time.Minute, true)
}

// What a process that fails to reach the board has applied is said later.
func TestAppliedIsSaidLater(t *testing.T) {
	l := newLaneTest(t)
	l.to(9*time.Minute, false)
	l.board.err = errors.New("away")
	l.applied(9 * time.Minute)
	l.board.err = nil
	l.to(11*time.Minute, true)
	l.process.Applied("shop", l.began) // says nothing new, and begins an exchange
	l.process.Flush()
	l.to(11*time.Minute+30*time.Second, false)
}

// The lane is not full while nobody knows how much of it is applied.
func TestLaneIsNotFullWithoutTheBoard(t *testing.T) {
	l := newLaneTest(t)
	l.to(11*time.Minute, true)
	l.board.err = errors.New("away")
	l.clock.advance(10 * time.Second)
	l.to(12*time.Minute, false)
}
