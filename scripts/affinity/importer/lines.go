package importer

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

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
