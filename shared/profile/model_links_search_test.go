package profile_test

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strings"
)

// linkVisit is a state to visit, and how it was reached.
type linkVisit struct {
	state linkState
	node  int32
}

type linkNode struct {
	parent        int32
	proc, variant uint8
}

// prepare returns the first state.
func (m *linkModel) prepare() linkState {
	s := m.start
	for i := range s.procs {
		if p := &s.procs[i]; p.kind == linkMessage {
			p.op = p.event
		}
	}
	m.begun, m.ops = s.procs, [8]linkProc{}
	for _, p := range s.procs {
		switch p.kind {
		case linkMessage, linkUnlinker, linkDeleter, linkChanger, linkSwitcher:
			m.ops[p.op] = p
		}
	}
	s.now = 2
	m.settle(&s)
	return s
}

// search visits all states, those of fewer steps first. It returns their number and, if one
// is wrong, the shortest way there. done is false if it has seen the most states that it may.
func (m *linkModel) search() (states int, way string, done bool) {
	first := m.prepare()
	seed := maphash.MakeSeed()
	seen := map[uint64]struct{}{maphash.Comparable(seed, first): {}}
	nodes := []linkNode{{parent: -1}}
	for level := []linkVisit{{first, 0}}; len(level) > 0; {
		var next []linkVisit
		for i := range level {
			for n := range linkProcs {
				m.next(&level[i].state, n, func(s *linkState, variant uint8, _, bad string) {
					hash := maphash.Comparable(seed, *s)
					if _, old := seen[hash]; way != "" || old && bad == "" {
						return
					}
					seen[hash] = struct{}{}
					nodes = append(nodes, linkNode{level[i].node, uint8(n), variant})
					if bad == "" {
						bad = m.always(s)
					}
					if bad != "" {
						way = m.retrace(nodes) + bad
						return
					}
					next = append(next, linkVisit{*s, int32(len(nodes) - 1)})
				})
			}
			if way != "" {
				return len(seen), way, true
			}
		}
		if m.most > 0 && len(seen) > m.most {
			return len(seen), "", false
		}
		level = next
	}
	return len(seen), "", true
}

// retrace says the steps to the last node.
func (m *linkModel) retrace(nodes []linkNode) string {
	var way []linkNode
	for n := int32(len(nodes) - 1); n > 0; n = nodes[n].parent {
		way = append(way, nodes[n])
	}
	m.tracing = true
	defer func() { m.tracing = false }()
	s := m.prepare()
	var b strings.Builder
	for i := len(way) - 1; i >= 0; i-- {
		n := int(way[i].proc)
		kind := linkKinds[s.procs[n].kind]
		var after linkState
		m.next(&s, n, func(next *linkState, variant uint8, said, _ string) {
			if variant == way[i].variant {
				after = *next
				fmt.Fprintf(&b, "\n\t%s %d: %s", kind, n, said)
			}
		})
		s = after
	}
	return b.String() + "\n\t"
}

// walk takes random ways through a case that is too large to visit.
func (m *linkModel) walk(ways int) (steps int, fault string) {
	type choice struct {
		state linkState
		said  string
		bad   string
	}
	m.tracing = true
	for seed := range ways {
		random := rand.New(rand.NewPCG(uint64(seed), 1))
		var said []string
		for s := m.prepare(); ; {
			var choices []choice
			for n := range linkProcs {
				m.next(&s, n, func(next *linkState, variant uint8, text, bad string) {
					if variant == 0 || random.IntN(8) == 0 {
						choices = append(choices, choice{*next, fmt.Sprint(linkKinds[s.procs[n].kind], " ", n, ": ", text), bad})
					}
				})
			}
			if len(choices) == 0 {
				break
			}
			c := choices[random.IntN(len(choices))]
			steps++
			said = append(said, c.said)
			if c.bad == "" {
				c.bad = m.always(&c.state)
			}
			if c.bad != "" {
				return steps, strings.Join(said, "\n\t") + "\n\t" + c.bad
			}
			s = c.state
		}
	}
	return steps, ""
}

var linkKinds = [...]string{"nobody", "message", "reader", "unlinker", "deleter", "changer",
	"fold", "night", "sweep", "operator"}
