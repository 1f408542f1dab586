package crowdbuild

// Selects reports whether a sample of a share of the users contains a user.
var Selects = selects
