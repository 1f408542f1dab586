package schema

// MostQualifiers is how many an encoder keeps at most.
const MostQualifiers = maxQualifiers

// Qualifiers are those that it keeps.
func (e *Encoder) Qualifiers() int { return len(e.qualifiers) }
