package crowdbuild

// Selects reports whether a sample of a share of the users contains a user.
var Selects = selects

// NamedBytes is about what an object takes beside its id.
const NamedBytes = namedBytes
