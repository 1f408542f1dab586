package importer

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/fault"
)

// rows reads the records of a CSV file as RFC 4180 describes them. LF and CRLF end a line.
// CR does too in a file whose first line it ends, and in a line that is a bad record with
// its CRs as characters. Blank lines are not records. Spaces around a quoted cell do not
// count. A quote within a cell that does not begin with one is a character of the cell. So is
// a quote in a quoted cell that neither a delimiter nor the end of the line follows, as in
// "5" pipe". The delimiter is a comma, or what else separates the cells of the file.
//
// A quoted cell may hold line breaks. Three signs say that its quote is a stray one: nothing
// closes it within maxCellLines lines and maxLine bytes; the quote that closes it has other
// text behind it; or a good record begins at a later line of the cell. Then the record is its
// first line alone, which is refused, and the next line begins a record. So a stray quote
// costs its record and no other. A record without these signs that has the wrong number of
// cells is refused with all of its lines.
type rows struct {
	lines     physical
	delimiter byte
	// ahead are lines that were read to find the end of a cell, those from at on are yet
	// to be read. keep adds further ones.
	ahead []physicalLine
	at    int
	keep  bool
	width int // cells of a record; 0: any number
	// whole reports whether cells of the right number are a good record; nil: none are.
	whole func(cells []string) bool
	cells []string
}

// sniff finds the delimiter, if that is not given: of a comma, a semicolon and a tab the one
// that cuts the most known names out of the first line, and else the most cells. A line
// such as sep=; names it, as Excel has it, and is no record.
func (r *rows) sniff(known func(name string) bool) error {
	r.keep = true
	defer func() { r.keep = false }()
	for {
		l, err := r.line()
		if err != nil {
			return err
		}
		text := string(l.text)
		separator, named := strings.CutPrefix(text, "sep=")
		switch {
		case strings.TrimSpace(text) == "":
			continue
		case named && len(separator) == 1:
			if r.delimiter == 0 {
				r.delimiter = separator[0]
			}
			return nil
		}
		r.at-- // to be read again
		if r.delimiter != 0 {
			return nil
		}
		r.delimiter = mostCells(text, l.end, known)
		return nil
	}
}

// mostCells chooses the delimiter of a first line.
func mostCells(text, end string, known func(name string) bool) byte {
	best := byte(',')
	var most [2]int // known names, and cells
	for _, delimiter := range []byte(",;\t") {
		s := cellScanner{delimiter: delimiter}
		s.line(text, end)
		found := [2]int{0, len(s.cells)}
		for _, cell := range s.cells {
			if known(strings.TrimSpace(cell)) {
				found[0]++
			}
		}
		if slices.Compare(found[:], most[:]) > 0 {
			best, most = delimiter, found
		}
	}
	return best
}

// maxCellLines is the most lines of a record, and parts of a line.
const maxCellLines = 10_000

// row is a record, or the reason for which it is refused.
type row struct {
	first, last int // lines, from 1
	cells       []string
	fault       string
	tooLong     bool
}

// next returns the next record. Its cells are valid until the following call.
func (r *rows) next() (row, error) {
	for {
		l, err := r.line()
		if err != nil {
			return row{}, err
		}
		found := row{first: l.number, last: l.number, tooLong: l.tooLong}
		text := string(l.text)
		switch {
		case l.tooLong:
			return found, nil
		case strings.TrimSpace(text) == "":
			continue
		}
		s := cellScanner{delimiter: r.delimiter, cells: r.cells[:0]}
		if s.line(text, l.end); s.open {
			found.last, found.fault = r.complete(&s, l)
		}
		r.cells, found.cells = s.cells, s.cells
		if found.fault == "" && r.width > 0 && len(s.cells) != r.width {
			found.fault = fmt.Sprintf("the row has %d cells, and the line of names has %d", len(s.cells), r.width)
		}
		switch {
		case found.fault != "" && found.last == found.first && r.split(l.number, text):
			continue
		case found.fault != "":
		case !utf8.ValidString(text), found.last > found.first && !utf8.ValidString(strings.Join(s.cells, "")):
			found.fault = "not valid UTF-8: " + fault.NotUTF8([]byte(strings.Join(s.cells, ",")))
		}
		if found.fault != "" && found.last > found.first {
			found.fault += fmt.Sprintf(" (lines %d to %d)", found.first, found.last)
		}
		return found, nil
	}
}

// split has the parts of a line between its CRs read as lines. It reports whether there are
// such parts, and not more than it keeps.
func (r *rows) split(number int, text string) bool {
	if n := strings.Count(text, "\r"); n == 0 || n > maxCellLines {
		return false
	}
	var parts []physicalLine
	for part := range strings.SplitSeq(text, "\r") {
		parts = append(parts, physicalLine{number: number, text: []byte(part), end: "\n"})
	}
	r.ahead, r.at = append(parts, r.ahead[r.at:]...), 0
	return true
}

// complete reads the lines behind a first one that ends within a quoted cell, and returns
// the last line of the record. If the quote is a stray one, it says so and takes none of
// them.
func (r *rows) complete(s *cellScanner, first physicalLine) (last int, stray string) {
	opened, cell := string(first.text), len(s.cells)+1
	r.ahead, r.at, r.keep = slices.Delete(r.ahead, 0, r.at), 0, true
	defer func() { r.keep = false }()
	for size := len(first.text); s.open; {
		column := len(s.cells) // of the cell that is open
		l, ok := r.further(s, &size)
		// The last line of a cell in the first column has as many cells as a record
		// has, whatever its text.
		if !ok || r.begins(r.at-1) && (column > 0 || s.open && len(s.cells) == 0 ||
			r.good(strings.Replace(opened, `"`, "", 1))) {
			r.at = 0
			return first.number, fmt.Sprintf("a quote begins cell %d of the row, and no quote ends it: write \"\" for "+
				"a quote in a quoted cell", cell)
		}
		last = l.number
	}
	return last, ""
}

// further adds a line to a record of size bytes that ends within a quoted cell. It reports
// whether the cell may go on, or end, in that line.
func (r *rows) further(s *cellScanner, size *int) (physicalLine, bool) {
	if s.inner {
		return physicalLine{}, false
	}
	l, err := r.line()
	if *size += len(l.text); err != nil || l.tooLong || *size > maxLine ||
		r.at > maxCellLines { // the next call returns the error
		return l, false
	}
	s.line(string(l.text), l.end)
	return l, !s.inner
}

// begins reports whether a good record begins at a line ahead.
func (r *rows) begins(at int) bool {
	if r.whole == nil {
		return false
	}
	back := r.at
	defer func() { r.at = back }()
	r.at = at + 1
	s := cellScanner{delimiter: r.delimiter}
	s.line(string(r.ahead[at].text), r.ahead[at].end)
	for size := len(r.ahead[at].text); s.open; {
		if _, ok := r.further(&s, &size); !ok {
			return false
		}
	}
	return len(s.cells) == r.width && r.whole(s.cells)
}

// good reports whether a line is a good record.
func (r *rows) good(text string) bool {
	s := cellScanner{delimiter: r.delimiter}
	s.line(text, "")
	return r.whole != nil && !s.open && len(s.cells) == r.width && r.whole(s.cells)
}

func (r *rows) line() (physicalLine, error) {
	if r.at == len(r.ahead) {
		if !r.keep {
			r.ahead, r.at = r.ahead[:0], 0
			return r.lines.next()
		}
		l, err := r.lines.next()
		if err != nil {
			return l, err
		}
		l.text = bytes.Clone(l.text)
		r.ahead = append(r.ahead, l)
	}
	r.at++
	return r.ahead[r.at-1], nil
}

// cellScanner cuts lines into cells.
type cellScanner struct {
	delimiter byte
	cells     []string
	open      bool // the last line ended within a quoted cell
	inner     bool // a quote within a quoted cell has other text behind it
	cell      strings.Builder
}

// cut cuts text around the first delimiter.
func (s *cellScanner) cut(text string) (cell, rest string, more bool) {
	if i := strings.IndexByte(text, s.delimiter); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, "", false
}

// blank is what may stand around a quoted cell.
func (s *cellScanner) blank() string {
	switch s.delimiter {
	case '\t':
		return " "
	case ' ':
		return "\t"
	}
	return " \t"
}

// line adds the cells of a line. end is what ends the line, of which a quoted cell has
// every character.
func (s *cellScanner) line(text, end string) {
	if !s.open && strings.IndexByte(text, '"') < 0 { // nearly all lines
		for {
			cell, rest, more := s.cut(text)
			s.cells = append(s.cells, cell)
			if !more {
				return
			}
			text = rest
		}
	}
	for {
		if !s.open {
			unquoted := strings.TrimLeft(text, s.blank())
			if !strings.HasPrefix(unquoted, `"`) {
				cell, rest, more := s.cut(text)
				s.cells = append(s.cells, cell)
				if !more {
					return
				}
				text = rest
				continue
			}
			text = unquoted[1:]
			cell, behind, closed := strings.Cut(text, `"`)
			if closed && (behind == "" || behind[0] == s.delimiter) { // nearly all quoted cells
				s.cells = append(s.cells, cell)
				if behind == "" {
					return
				}
				text = behind[1:]
				continue
			}
			s.cell.Reset()
		}
		rest, closed := s.quoted(text)
		if s.open = !closed; s.open {
			s.cell.WriteString(end)
			return
		}
		s.cells = append(s.cells, s.cell.String())
		if rest == "" {
			return
		}
		text = rest[1:] // behind the delimiter
	}
}

// quoted adds text to a quoted cell up to the quote that closes it. It returns what is
// behind that, without spaces: a delimiter, or nothing.
func (s *cellScanner) quoted(text string) (rest string, closed bool) {
	for {
		before, behind, found := strings.Cut(text, `"`)
		s.cell.WriteString(before)
		if !found {
			return "", false
		}
		if strings.HasPrefix(behind, `"`) {
			s.cell.WriteByte('"')
			text = behind[1:]
			continue
		}
		rest = strings.TrimLeft(strings.TrimLeft(behind, s.blank()), "\r")
		if rest == "" || rest[0] == s.delimiter {
			return rest, true
		}
		s.inner = true
		s.cell.WriteByte('"')
		text = behind
	}
}
