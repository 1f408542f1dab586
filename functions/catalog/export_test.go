package catalog

// NewGrouped is New with another size of the records that a batch merges at a time.
var NewGrouped = newGrouped
