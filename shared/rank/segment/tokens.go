package segment

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/affinityengine/affinity/shared/wire"
)

// TokenOrder compares user tokens as the keys of their rows do, in which a comma follows
// them: "a+b" comes before "a". "" comes before all.
func TokenOrder(a, b string) int {
	n := wire.Common(a, b)
	switch {
	case n < len(a) && n < len(b):
		return cmp.Compare(a[n], b[n])
	case n < len(a):
		if n > 0 && a[n] < ',' {
			return -1
		}
		return 1
	case n < len(b):
		return -TokenOrder(b, a)
	}
	return 0
}

// TokenIndex says which row of tokens of a part holds a token.
type TokenIndex struct{ firsts []string }

func appendIndex(b []byte, firsts []string) []byte {
	start := len(b)
	b = binary.AppendUvarint(append(b, format), uint64(len(firsts)))
	previous := ""
	for _, first := range firsts {
		b = wire.AppendNext(b, previous, first)
		previous = first
	}
	return wire.Seal(b, start)
}

// ParseIndex decodes the cell of a row of kind Index.
func ParseIndex(cell []byte) (TokenIndex, error) {
	r, err := unseal(cell)
	if err != nil {
		return TokenIndex{}, fmt.Errorf("read index of tokens: %w", err)
	}
	firsts := make([]string, r.Size(2))
	var last []byte
	for i := range firsts {
		last = r.NextText(nil, last, r.Unsigned())
		firsts[i] = string(last)
	}
	if err := r.End(); err != nil || !slices.IsSortedFunc(firsts, TokenOrder) {
		return TokenIndex{}, fmt.Errorf("read index of tokens: %w", wire.ErrDamaged)
	}
	return TokenIndex{firsts}, nil
}

// Row returns the row that holds a token if the part does, or -1.
func (x TokenIndex) Row(token string) int {
	return sort.Search(len(x.firsts), func(i int) bool { return TokenOrder(x.firsts[i], token) > 0 }) - 1
}

// Size returns the memory that the index takes, in bytes.
func (x TokenIndex) Size() int { return stringsSize(x.firsts) }

func stringsSize(list []string) int {
	size := 64
	for _, s := range list {
		size += len(s) + 16
	}
	return size
}

// TokenRow is a row of tokens.
type TokenRow struct {
	tokens  []string
	blanked []bool // nil: none
}

func appendTokens(b []byte, row TokenRow) []byte {
	start := len(b)
	b = binary.AppendUvarint(append(b, format), uint64(len(row.tokens)))
	previous := ""
	for i, token := range row.tokens {
		n, blank := wire.Common(previous, token), uint64(0)
		if row.blanked != nil && row.blanked[i] {
			blank = 1
		}
		b = wire.AppendText(binary.AppendUvarint(b, uint64(n)<<1|blank), token[n:])
		previous = token
	}
	return wire.Seal(b, start)
}

// ParseTokens decodes the cell of a row of tokens: the tokens of the ordinals from
// N * TokensPerRow on, sorted.
func ParseTokens(cell []byte) (TokenRow, error) {
	r, err := unseal(cell)
	if err != nil {
		return TokenRow{}, fmt.Errorf("read tokens: %w", err)
	}
	var row TokenRow
	n := r.Size(2)
	if n > TokensPerRow {
		return TokenRow{}, fmt.Errorf("read %d tokens of a row: %w", n, wire.ErrDamaged)
	}
	ends := make([]int, n)
	var all []byte // all tokens share one string
	from := 0
	for i := range ends {
		shared := r.Unsigned()
		if shared&1 == 1 {
			if row.blanked == nil {
				row.blanked = make([]bool, n)
			}
			row.blanked[i] = true
		}
		start := len(all)
		all = r.NextText(all, all[from:], shared>>1)
		from, ends[i] = start, len(all)
	}
	if err := r.End(); err != nil {
		return TokenRow{}, fmt.Errorf("read tokens: %w", err)
	}
	text, start := string(all), 0
	row.tokens = make([]string, n)
	for i, end := range ends {
		row.tokens[i], start = text[start:end], end
	}
	if !slices.IsSortedFunc(row.tokens, TokenOrder) {
		return TokenRow{}, fmt.Errorf("read tokens: %w", wire.ErrDamaged)
	}
	return row, nil
}

// Len returns the number of tokens.
func (r TokenRow) Len() int { return len(r.tokens) }

// At returns the token in a place of the row. It is false if the token has been blanked.
func (r TokenRow) At(i int) (string, bool) {
	if i < 0 || i >= len(r.tokens) || r.blanked != nil && r.blanked[i] {
		return "", false
	}
	return r.tokens[i], true
}

// Find returns the place of a token, or of the first that is greater. found is false if
// the row does not have it.
func (r TokenRow) Find(token string) (place int, found bool) {
	place, _ = slices.BinarySearchFunc(r.tokens, token, TokenOrder)
	for i := place; i < len(r.tokens) && r.tokens[i] == token; i++ {
		if r.blanked == nil || !r.blanked[i] {
			return i, true
		}
	}
	return place, false
}

// Size returns the memory that the row takes, in bytes.
func (r TokenRow) Size() int { return stringsSize(r.tokens) + len(r.blanked) }

// Blank returns the cell of a row of tokens without a token. It is false if the row does not
// have the token. The others keep their ordinals.
func Blank(cell []byte, token string) ([]byte, bool, error) {
	row, err := ParseTokens(cell)
	if err != nil {
		return nil, false, err
	}
	i, found := row.Find(token)
	if !found {
		return cell, false, nil
	}
	if row.blanked == nil {
		row.blanked = make([]bool, len(row.tokens))
	}
	row.blanked[i] = true
	// A blanked token takes the text of the one before, so that the row stays sorted. Those
	// behind it may be blanked with its own text.
	previous := ""
	for j := range row.tokens {
		if row.blanked[j] {
			row.tokens[j] = previous
		}
		previous = row.tokens[j]
	}
	return appendTokens(nil, row), true, nil
}

// BlankIndex returns the cell of an index of tokens after a token of row n has been
// blanked: the row begins with the first token that is left in its cell.
func BlankIndex(cell []byte, n int, tokens []byte) ([]byte, error) {
	x, err := ParseIndex(cell)
	if err != nil {
		return nil, err
	}
	row, err := ParseTokens(tokens)
	if err != nil {
		return nil, err
	}
	if n < 0 || n >= len(x.firsts) {
		return nil, fmt.Errorf("blank row %d of %d in an index of tokens: %w", n, len(x.firsts), wire.ErrDamaged)
	}
	x.firsts[n] = "\xff" // above every token: an empty row at the end holds none
	if n+1 < len(x.firsts) {
		x.firsts[n] = x.firsts[n+1]
	}
	for i := range row.tokens {
		if token, ok := row.At(i); ok {
			x.firsts[n] = token
			break
		}
	}
	return appendIndex(nil, x.firsts), nil
}
