package profiles

// NewBounded is New with other limits of a batch: the users that it reads at a
// time, and the bytes of its profiles.
var NewBounded = newBounded
