package cache

import (
	"sync"
	"time"
)

const (
	// pause is how long the calls of a group do not wait after a read was slow or failed. Then
	// one of them waits again.
	pause = 2 * time.Second
	// maxPaused bounds the groups whose slow reads are remembered.
	maxPaused = 1000
)

// Slow remembers the groups, as a rule apps, for whose reads no call should wait, because some
// in a row were slow or failed. It is safe for concurrent use.
type Slow struct {
	strikes int // so many reads in a row
	now     func() time.Time

	mu   sync.Mutex
	slow Map[string, slowGroup]
}

type slowGroup struct {
	strikes int
	until   time.Time // zero: calls wait
}

// NewSlow returns a Slow that pauses a group after so many slow reads in a row.
func NewSlow(strikes int, now func() time.Time) *Slow {
	return &Slow{strikes: strikes, now: now, slow: New[string, slowGroup](maxPaused)}
}

// MayWait reports whether a call may wait for a read. After a pause only one may, until a read
// ends well.
func (s *Slow) MayWait(group string) bool {
	if s.slow.Len() == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g, _ := s.slow.Get(group)
	now := s.now()
	if now.Before(g.until) {
		return false
	}
	if !g.until.IsZero() {
		g.until = now.Add(pause)
		s.slow.Set(group, g)
	}
	return true
}

// paused is the opposite of MayWait, but lets no call wait.
func (s *Slow) paused(group string) bool {
	g, ok := s.slow.Peek(group)
	return ok && s.now().Before(g.until)
}

// Note remembers how a read has ended. paused says that the group's calls stop to wait.
func (s *Slow) Note(group string, well bool) (paused bool) {
	if well && s.slow.Len() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if well {
		s.slow.Delete(group)
		return false
	}
	g, _ := s.slow.Get(group)
	if g.strikes++; g.strikes >= s.strikes {
		paused = g.until.IsZero()
		g.until = s.now().Add(pause)
	}
	s.slow.Set(group, g)
	return paused
}
