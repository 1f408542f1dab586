package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/fault"
)

// rows reads the records of a CSV file as RFC 4180 describes them. LF and CRLF end a line.
// CR does too in a file whose first line it ends, and in a line that is a bad record with
// its CRs as characters. Blank lines are not records. Spaces around a quoted cell do not
// count. A quote within a cell that does not begin with one is a character of the cell. So is
// a quote in a quoted cell that neither a comma nor the end of the line follows, as in
// "5" pipe".
//
// A quoted cell may hold line breaks. Three signs say that its quote is a stray one: nothing
// closes it within maxCellLines lines and maxLine bytes; the quote that closes it has other
// text behind it; or a good record begins at a later line of the cell. Then the record is its
// first line alone, which is refused, and the next line begins a record. So a stray quote
// costs its record and no other. A record without these signs that has the wrong number of
// cells is refused with all of its lines.
type rows struct {
	lines physical
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
		s := cellScanner{cells: r.cells[:0]}
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
	s := cellScanner{}
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
	s := cellScanner{}
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
	cells []string
	open  bool // the last line ended within a quoted cell
	inner bool // a quote within a quoted cell has other text behind it
	cell  strings.Builder
}

// line adds the cells of a line. end is what ends the line, of which a quoted cell has
// every character.
func (s *cellScanner) line(text, end string) {
	if !s.open && strings.IndexByte(text, '"') < 0 { // nearly all lines
		for {
			cell, rest, more := strings.Cut(text, ",")
			s.cells = append(s.cells, cell)
			if !more {
				return
			}
			text = rest
		}
	}
	for {
		if !s.open {
			unquoted := strings.TrimLeft(text, " \t")
			if !strings.HasPrefix(unquoted, `"`) {
				cell, rest, more := strings.Cut(text, ",")
				s.cells = append(s.cells, cell)
				if !more {
					return
				}
				text = rest
				continue
			}
			text = unquoted[1:]
			cell, behind, closed := strings.Cut(text, `"`)
			if closed && (behind == "" || behind[0] == ',') { // nearly all quoted cells
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
		text = rest[1:] // behind the comma
	}
}

// quoted adds text to a quoted cell up to the quote that closes it. It returns what is
// behind that, without spaces: a comma, or nothing.
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
		if rest := strings.TrimLeft(behind, " \t\r"); rest == "" || rest[0] == ',' {
			return rest, true
		}
		s.inner = true
		s.cell.WriteByte('"')
		text = behind
	}
}

// physical reads lines that LF or CRLF ends. If CR alone ends the first one, it ends all.
type physical struct {
	in     *bufio.Reader
	number int // of the last line
	cr     bool
}

// physicalLine is a line without its end.
type physicalLine struct {
	number  int
	text    []byte
	end     string // what a cell has of its end: LF for CRLF
	tooLong bool   // longer than maxLine; text is missing
}

// next returns the next line, io.EOF behind the last one. Its text is valid until the
// following call. With another error, the text before it is not a line.
func (p *physical) next() (physicalLine, error) {
	l := physicalLine{number: p.number + 1, end: "\n"}
	var long []byte // the line so far, if the buffer does not hold all of it
	for begun := false; ; begun = true {
		if _, err := p.in.Peek(1); err != nil {
			if !errors.Is(err, io.EOF) || !begun {
				return physicalLine{}, err
			}
			p.number, l.text = l.number, long
			return l, nil
		}
		end, width := p.end()
		window, _ := p.in.Peek(end + width)
		if l.tooLong = l.tooLong || len(long)+end > maxLine; l.tooLong {
			long = nil
		} else if long != nil || width == 0 {
			long = append(long, window[:end]...)
		}
		if width > 0 {
			p.number = l.number
			switch {
			case l.tooLong:
			case long != nil:
				l.text = bytes.TrimSuffix(long, []byte("\r"))
			default:
				l.text = window[:end]
			}
			if window[end] == '\r' && width == 1 {
				l.end = "\r"
			}
		}
		_, _ = p.in.Discard(end + width) // these bytes were peeked
		if width > 0 {
			return l, nil
		}
	}
}

// end returns how much of what has arrived belongs to the line, and the width of what
// ends it, 0 if it goes on.
func (p *physical) end() (end, width int) {
	window, _ := p.in.Peek(p.in.Buffered())
	end = len(window)
	if i := bytes.IndexByte(window, '\n'); i >= 0 {
		end, width = i, 1
		if i > 0 && window[i-1] == '\r' {
			end, width = i-1, 2
		}
	}
	if !p.cr && p.number > 0 {
		return end, width
	}
	i := bytes.IndexByte(window[:end], '\r')
	switch {
	case i < 0:
		return end, width
	case i > 0 && i+3 > p.in.Size(): // what follows does not fit into the buffer
		return i, 0
	}
	behind, _ := p.in.Peek(i + 3)
	switch behind = behind[i+1:]; {
	case bytes.HasPrefix(behind, []byte("\n")):
		return i, 2
	case p.cr:
		return i, 1
	case bytes.HasPrefix(behind, []byte("\r\n")): // as a program writes that converts CRLF to CRLF
		return i, 3
	}
	p.cr = true
	return i, 1
}
