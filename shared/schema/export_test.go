package schema

// MostQualifiers is how many an encoder keeps at most.
const MostQualifiers = keptQualifiers

// Qualifiers are those that it keeps.
func (e *Encoder) Qualifiers() int { return len(e.qualifiers) }
