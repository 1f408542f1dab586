package profile_test

// The phases of an app that moves, and of its user.
const (
	resting int8 = iota
	users
	switched
	dropping

	here    int8 = 0
	leaving int8 = 1
	moved   int8 = 2
)

// The steps of a mover, and those of the app before and behind it.
const (
	toUsers int8 = iota
	leaves
	reads
	copies
	moves
	arrival
	toSwitch
	toDrop
	reconciles
	moverEnds
)

func (m *callModel) move(s callState, each func(callState)) {
	if s.mover > copies && s.mover < moverEnds && s.copied != (callRegion{}) {
		slow := s // another mover, which has read the same
		m.copy(&slow)
		slow.copied = callRegion{}
		each(slow)
	}
	if s.mover > moves && s.mover < moverEnds && s.regions[0] != (callRegion{}) { // or reads now
		slow := s
		slow.copied = s.regions[0]
		each(slow)
	}
	wait := func(phase int8) bool { // until nobody acts on an earlier phase than the last
		for _, d := range s.m[:m.deliveries] {
			if d.phase < phase-1 && d.at != arrives && d.at != acknowledged && !m.noWait {
				return false
			}
		}
		s.phase = phase
		return true
	}
	switch s.mover {
	case toUsers:
		s.phase = users
	case leaves:
		for _, d := range s.m[:m.deliveries] {
			if d.phase == resting && d.at != arrives && d.at != acknowledged && !m.noWait {
				return
			}
		}
		s.owner = leaving
	case reads:
		s.copied = s.regions[0]
	case copies:
		m.copy(&s)
	case moves:
		s.owner = moved
	case arrival:
		s.purgeArrived()
	case toSwitch:
		if !wait(switched) {
			return
		}
	case toDrop:
		if !wait(dropping) {
			return
		}
	case reconciles: // and drops what is left, once nobody is in an earlier phase
		if !wait(dropping + 1) {
			return
		}
		s.phase, s.copied = dropping, callRegion{}
		s.regions[1].merge(s.regions[0].receipts)
		s.regions[0] = callRegion{}
		s.purgeArrived()
	default:
		return
	}
	s.mover++
	each(s)
}

// merge adds rows of another log.
func (r *callRegion) merge(receipts [mostTicks + 1]int8) {
	for time, receipt := range receipts {
		r.receipts[time] = max(r.receipts[time], receipt)
	}
}

// copy writes what a mover has read.
func (m *callModel) copy(s *callState) {
	there := &s.regions[1]
	there.merge(s.copied.receipts)
	if !m.notCopied && s.copied.memory != 0 && there.memory == 0 {
		there.memory = s.copied.memory
	}
}

// purgeArrived removes what a copy has brought after a purge.
func (s *callState) purgeArrived() {
	there := &s.regions[1]
	for time, receipt := range there.receipts {
		if int8(time) <= s.deleted || receipt <= s.deleted {
			there.receipts[time] = 0
		}
	}
	if there.memory <= s.deleted {
		there.memory = 0
	}
}
