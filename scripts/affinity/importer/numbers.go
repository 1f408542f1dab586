package importer

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// numbers decides by the first rows whether the cells of a column are numbers, and writes
// those that are as such. A column is of numbers if nine of ten of its cells are. It has
// decimal commas if a cell can have nothing else, such as 59,90, and no cell can only have a
// decimal point, such as 12.50. All other cells stay texts.
type numbers struct {
	column         string
	cells          int    // that are not empty
	points, commas int    // numbers of each form
	unclear        int    // cells such as 1,299, which may be 1299 or 1.299
	point, comma   string // an example of a cell that can have no other form
	either         string // and of one that is unclear
	form           numberForm
	others         int    // cells that are no numbers
	other          string // the first of them
	otherLine      int
}

// numberForm is how a column writes numbers.
type numberForm int

const (
	noNumbers numberForm = iota
	decimalPoints
	decimalCommas
)

var (
	pointForm = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?$`)
	// commaForm has points, or spaces of several widths, between thousands.
	commaForm   = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,14}|[1-9][0-9]{0,2}([. \x{a0}\x{202f}][0-9]{3}){1,4})(,[0-9]+)?$`)
	unclearForm = regexp.MustCompile(`^-?[1-9][0-9]{0,2}[.,][0-9]{3}$`)
)

// see counts a cell.
func (n *numbers) see(cell string) {
	if cell == "" {
		return
	}
	n.cells++
	point, comma, unclear := pointForm.MatchString(cell), commaForm.MatchString(cell), unclearForm.MatchString(cell)
	if point {
		n.points++
	}
	if comma {
		n.commas++
	}
	switch {
	case unclear && !point:
		n.unclear++
		n.either = firstOf(n.either, cell)
	case !unclear && point && strings.Contains(cell, "."):
		n.point = firstOf(n.point, cell)
	case !unclear && comma && strings.Contains(cell, ","):
		n.comma = firstOf(n.comma, cell)
	}
}

// decide ends the first rows.
func (n *numbers) decide() {
	switch {
	case n.comma != "" && n.point == "" && n.most(n.commas):
		n.form = decimalCommas
	case n.comma == "" && n.most(n.points):
		n.form = decimalPoints
	}
}

// most reports whether cells are nearly all.
func (n *numbers) most(cells int) bool { return cells > 0 && 10*cells >= 9*n.cells }

// append appends a cell to JSON.
func (n *numbers) append(text []byte, cell string, line int) []byte {
	switch {
	case n.form == decimalPoints && pointForm.MatchString(cell):
		return append(text, cell...)
	case n.form == decimalCommas && commaForm.MatchString(cell):
		for _, r := range cell {
			switch {
			case r == ',':
				text = append(text, '.')
			case r == '-' || r >= '0' && r <= '9':
				text = append(text, byte(r))
			}
		}
		return text
	case n.form != noNumbers:
		n.others++
		if n.others == 1 {
			n.other, n.otherLine = cell, line
		}
	}
	text, _ = jsontext.AppendQuote(text, cell) // rows are UTF-8
	return text
}

// notes says what the reader of the summary should know of the column.
func (n *numbers) notes() []string {
	var notes []string
	switch {
	case n.form == decimalCommas:
		notes = append(notes, fmt.Sprintf("column %q: decimal commas are read, such as %s", n.column, n.comma))
	case n.form == noNumbers && n.comma != "" && n.point != "" && n.most(n.points+n.commas):
		notes = append(notes, fmt.Sprintf("column %q holds %s and %s: its cells stay texts", n.column, n.comma, n.point))
	case n.form == noNumbers && n.comma == "" && n.unclear > 0 && n.most(n.points+n.unclear):
		notes = append(notes, fmt.Sprintf("column %q holds %s, which may have a decimal comma or not: its cells stay texts",
			n.column, n.either))
	}
	if n.others > 0 && (n.form == decimalCommas || n.point != "") {
		stay := "1 cell is no number and stays a text"
		if n.others > 1 {
			stay = fmt.Sprintf("%d cells are no numbers and stay texts", n.others)
		}
		notes = append(notes, fmt.Sprintf("column %q: %s, such as %q in line %d", n.column, stay, n.other, n.otherLine))
	}
	return notes
}
