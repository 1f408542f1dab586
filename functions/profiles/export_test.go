package profiles

// NewBounded is New with another limit of the bytes of a batch's profiles.
var NewBounded = newBounded
