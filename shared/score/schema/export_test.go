package schema

// MostQualifiers bounds the qualifiers that an encoder keeps.
const MostQualifiers = maxQualifiers

// Qualifiers is how many qualifiers an encoder keeps.
func (e *Encoder) Qualifiers() int { return len(e.qualifiers) }
