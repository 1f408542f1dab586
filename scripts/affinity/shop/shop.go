// Package shop simulates a shop and its visitors: a catalog of some 340
// products, kinds of visitors with a known taste (personas), a month of their
// views, clicks, carts and orders, and a few minutes of live events. A person who
// reads the taste of a persona can judge the profile by eye.
//
// It is separate because it knows neither engines nor HTTP: it makes objects and
// events and keeps no data. The same seed and clock give the same bytes.
package shop

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// UsersPerPersona is how many users each persona has. User 0 is the regular, with
// a session every other day and exactly the persona's taste. Each of the others may
// prefer another brand or color of the same kind of product.
const UsersPerPersona = 90

// phoneUser is the user of each persona who visits the shop on a phone, too.
const phoneUser = 1

// Index is the index of the shop's objects and events.
const Index = "products"

// Shop is one simulated shop with its products and personas. It is immutable.
type Shop struct {
	seed     uint64
	objects  []Object
	personas []Persona
	choices  map[taste]*choice
}

// New returns the shop of a seed.
func New(seed uint64) *Shop {
	s := &Shop{seed: seed, personas: personas(), choices: map[taste]*choice{}}
	s.objects = catalog(s.random(streamCatalog))
	for _, p := range s.personas {
		for i, phase := range p.Phases {
			for n := range UsersPerPersona {
				t := tasteOf(p.ID, i, n)
				if s.choices[t] == nil {
					s.choices[t] = newChoice(s.objects, t.loves(phase))
				}
			}
		}
	}
	return s
}

// Objects returns the catalog, ordered by id.
func (s *Shop) Objects() []Object { return slices.Clone(s.objects) }

// Personas returns the kinds of visitors, always in the same order.
func (s *Shop) Personas() []Persona { return slices.Clone(s.personas) }

// Persona returns the persona with that id, and whether it exists.
func (s *Shop) Persona(id string) (Persona, bool) {
	i := slices.IndexFunc(s.personas, func(p Persona) bool { return p.ID == id })
	if i < 0 {
		return Persona{}, false
	}
	return s.personas[i], true
}

// UserToken is the token of a persona's user number n, counted from 0.
func UserToken(personaID string, n int) string { return fmt.Sprintf("%s-%03d", personaID, n) }

// PhoneToken is the anonymous token of the phone of the user of a persona who has one.
func PhoneToken(personaID string) string { return "phone-of-" + personaID }

// Each use of randomness has its own stream of the seed, so that one call never
// changes the result of another.
const (
	streamCatalog = iota + 1
	streamHistory
	streamLive
	streamPages
)

func (s *Shop) random(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(s.seed, stream)) }
