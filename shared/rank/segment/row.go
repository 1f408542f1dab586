package segment

// Kind says what a row of a part holds.
type Kind int

const (
	// List is the list of one filter in a part with Buckets = 0. Its columns are made by
	// BandColumn, or SmallColumn for a list of few users.
	List Kind = iota + 1
	// Bucket holds the lists of some filters of a part, one cell: see Lists.
	Bucket
	// Index says which row of tokens holds which tokens, one cell: see ParseIndex.
	Index
	// Tokens holds TokensPerRow user tokens, one cell: see ParseTokens.
	Tokens
	// Untils says when profiles expire. A column is an hour: see UntilColumn.
	Untils
	// Values lists filters with their numbers of holders, one cell: see EachValue.
	Values
	// SetOuts of a delta says which users of older parts no longer count. A column is
	// the ID of an older part: see ParseOrdinals.
	SetOuts
)

// Row is a row of a part as it is stored. Facet and Value name the filter of a List, N
// numbers the rows of the other kinds from 0.
type Row struct {
	Kind         Kind
	Facet, Value string
	N            int
	Cells        []Cell
}

// Cell is a cell of a row. Column may hold any bytes.
type Cell struct {
	Column string
	Value  []byte
}
