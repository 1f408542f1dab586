package segment

// TokenIndex says which row of tokens of a part holds a token.
type TokenIndex struct{ firsts []string }

// ParseIndex decodes the cell of a row of kind Index.
func ParseIndex(cell []byte) (TokenIndex, error) { return TokenIndex{}, nil }

// Row returns the row that holds a token if the part does, or -1.
func (x TokenIndex) Row(token string) int { return -1 }

// Size returns the memory that the index takes, in bytes.
func (x TokenIndex) Size() int { return 0 }

// ParseTokens decodes the cell of a row of tokens: the tokens of the ordinals from
// N * TokensPerRow on, sorted. A token that has been blanked is still in its place.
func ParseTokens(cell []byte) (TokenRow, error) { return TokenRow{}, nil }

// TokenRow is a row of tokens.
type TokenRow struct {
	tokens  []string
	blanked []bool
}

// Len returns the number of tokens.
func (r TokenRow) Len() int { return 0 }

// At returns the token in a place of the row. It is false if the token is blanked.
func (r TokenRow) At(i int) (string, bool) { return "", false }

// Find returns the place of a token, or of the first that is greater. found is false if
// the row does not have it.
func (r TokenRow) Find(token string) (place int, found bool) { return 0, false }

// Size returns the memory that the row takes, in bytes.
func (r TokenRow) Size() int { return 0 }

// Blank returns the cell of a row of tokens without a token, or false if it has no such
// token. The others keep their ordinals.
func Blank(cell []byte, token string) ([]byte, bool, error) { return nil, false, nil }

// AppendOrdinals appends the stored form of sorted ordinals.
func AppendOrdinals(dst []byte, ordinals []uint16) []byte { return nil }

// ParseOrdinals decodes what AppendOrdinals wrote.
func ParseOrdinals(cell []byte) ([]uint16, error) { return nil, nil }

// UntilColumn returns the column of a row of kind Untils that holds the profiles that
// expire in the hour of an instant (ms). Columns sort by time.
func UntilColumn(at int64) string { return "" }

// Expired passes the ordinals in cells of a row of kind Untils whose profiles have expired
// at an instant (ms), which is rounded up to a minute.
func Expired(cells []Cell, at int64, fn func(ordinal uint16)) error { return nil }

// EachValue passes the filters in a cell of kind Values with their numbers of holders, by
// facet, then value.
func EachValue(cell []byte, fn func(facet, value string, holders int) error) error { return nil }
