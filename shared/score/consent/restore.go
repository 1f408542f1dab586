package consent

import "github.com/affinityengine/affinity/shared/score/affinity"

// Restore returns the consents once those of a copy of the user were added. For each purpose the later answer holds, a
// withdrawal of two at one time, and what does not count is what does not count by one of them. So a copy that is
// restored again changes nothing. begins reports that a purpose is granted that was not: events of it may have been
// dropped, so now must cover them, unless the user has no events.
func (s Setting) Restore(c, from Consents, now affinity.Tombstone) (next Consents, changes, begins bool) {
	for i := range s.Purposes {
		p := &s.Purposes[i]
		one, _, found := c.of(p.Number)
		other, _, copied := from.of(p.Number)
		if !copied {
			if found {
				next = append(next, one)
			}
			continue
		}
		was := one
		if other.Asked > one.Asked || other.Asked == one.Asked && other.State > one.State {
			one.State, one.Asked = other.State, other.Asked
		}
		one.Since = advanced(one.Since, other.Since)
		if p.grants(one) && !p.grants(was) {
			one.Since, begins = advanced(one.Since, now), true
		}
		changes = changes || p.grants(one) != p.grants(was) || one.Since != was.Since
		next = append(next, one)
	}
	return s.sorted(c, next), changes, begins
}
