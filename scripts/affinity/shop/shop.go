// Package shop simulates a shop and the people in it: a catalogue of some three hundred products, kinds of people with a known taste
// (personas), a month of their views, clicks, carts and orders, and the next few minutes of them. It exists so that a profile can be
// judged by eye: whoever knows the persona knows what the profile ought to say. It is separate from the command line tool because it
// knows nothing of engines or HTTP: it makes objects and events, and keeps no data anywhere. The same seed and the same clock give the
// same bytes.
package shop

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// UsersPerPersona is how many users of each persona the shop has. The first of each, number 0, is its regular: a session every other day.
const UsersPerPersona = 100

// Index is the index that the shop's objects and events belong to.
const Index = "products"

// Shop is one simulated shop: what it sells and who comes. It is immutable once made.
type Shop struct {
	seed     uint64
	objects  []Object
	personas []Persona
	choices  map[string][]*choice // persona id -> one distribution over the objects a phase
}

// New makes the shop of that seed.
func New(seed uint64) *Shop {
	s := &Shop{seed: seed, personas: personas(), choices: map[string][]*choice{}}
	s.objects = catalogue(s.random(streamCatalogue))
	for _, p := range s.personas {
		for _, phase := range p.Phases {
			s.choices[p.ID] = append(s.choices[p.ID], newChoice(s.objects, phase.Loves))
		}
	}
	return s
}

// Objects returns the catalogue, in the order of its ids.
func (s *Shop) Objects() []Object { return slices.Clone(s.objects) }

// Personas returns the kinds of people who come, always in the same order.
func (s *Shop) Personas() []Persona { return slices.Clone(s.personas) }

// Persona returns the persona with that id; false when there is none.
func (s *Shop) Persona(id string) (Persona, bool) {
	i := slices.IndexFunc(s.personas, func(p Persona) bool { return p.ID == id })
	if i < 0 {
		return Persona{}, false
	}
	return s.personas[i], true
}

// UserToken is the token of a persona's user number n, counted from 0.
func UserToken(personaID string, n int) string { return fmt.Sprintf("%s-%03d", personaID, n) }

// Each use of chance has its own stream of the seed, so that asking for one thing never changes another.
const (
	streamCatalogue = iota + 1
	streamHistory
	streamLive
)

func (s *Shop) random(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(s.seed, stream)) }
