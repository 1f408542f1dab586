package archive

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/fault"
)

// maxLine is the longest line of a message, in bytes.
const maxLine = bus.MaxMessage

// Fault is a part of a file that is no message. The messages behind it can be read.
type Fault struct {
	Line   int // from 1
	Reason string
}

// Error names the line.
func (f *Fault) Error() string { return fmt.Sprintf("line %d: %s", f.Line, f.Reason) }

// Reader reads the messages of one file.
type Reader struct {
	in     *bufio.Reader
	number int    // of the last line that was read
	back   []line // read again before all others
	err    error  // that of the next line, after a line that it cut short
}

// line is a line that is not blank, without its end.
type line struct {
	number  int
	text    []byte
	tooLong bool
}

// NewReader returns a reader of a file's text.
func NewReader(in *bufio.Reader) *Reader { return &Reader{in: in} }

// Next returns the next message, and the number of its first line. The error is io.EOF
// at the end, or a *Fault for what is no message, after which Next may be called again.
func (r *Reader) Next() (bus.Message, int, error) {
	first, err := r.line()
	if errors.Is(err, io.EOF) {
		return bus.Message{}, 0, io.EOF
	}
	if err != nil {
		r.err = io.EOF
		return bus.Message{}, 0, &Fault{r.number,
			fmt.Sprintf("the file cannot be read beyond this line (is it damaged or cut short?): %v", err)}
	}
	if first.tooLong {
		return bus.Message{}, 0, &Fault{first.number, fmt.Sprintf("the line is longer than %d bytes", maxLine)}
	}
	if reason := fault.NotUTF8(first.text); reason != "" {
		return bus.Message{}, 0, &Fault{first.number, "not valid UTF-8: " + reason}
	}
	m, lines, err := bus.DecodeHead(first.text)
	if err != nil {
		return bus.Message{}, 0, &Fault{first.number, err.Error()}
	}
	if lines == 0 && m.Kind == bus.Accepted {
		lines = 1 // of a version before 1
	}
	if lines < 1 {
		return bus.Message{}, 0, &Fault{first.number, "the first line of a message does not say how many follow"}
	}
	body, err := r.body(lines)
	if err != nil { // the next call returns it again
		r.resume(body)
		return bus.Message{}, 0, &Fault{first.number,
			fmt.Sprintf("the message is cut short: %d of %d lines of its body follow", len(body), lines)}
	}
	m.Body = join(m.Kind, body)
	if err := decodable(m); err != nil {
		r.resume(body)
		return bus.Message{}, 0, &Fault{body[0].number, err.Error()}
	}
	return m, first.number, nil
}

// body reads the lines of a body. With an error, it returns those before it.
func (r *Reader) body(lines int) (body []line, err error) {
	for range lines {
		l, err := r.line()
		if err != nil {
			return body, err
		}
		body = append(body, l)
	}
	return body, nil
}

// resume has the lines of a broken body read again from the first one on that begins
// another message.
func (r *Reader) resume(body []line) {
	for i, l := range body {
		if _, lines, err := bus.DecodeHead(l.text); err == nil && lines > 0 {
			r.back = append(body[i:len(body):len(body)], r.back...)
			return
		}
	}
}

func join(kind bus.Kind, body []line) []byte {
	if kind == bus.Accepted {
		return body[0].text
	}
	var all bytes.Buffer
	for _, l := range body {
		all.Write(l.text)
		all.WriteByte('\n')
	}
	return all.Bytes()
}

// decodable returns an error if the body of a message is broken.
func decodable(m bus.Message) (err error) {
	if reason := fault.NotUTF8(m.Body); reason != "" {
		return fault.New(fault.Malformed, "not valid UTF-8: %s", reason)
	}
	switch m.Kind {
	case bus.Reenriched:
		_, err = m.Logged()
	case bus.SignedIn:
		_, err = m.SignIns()
	default:
		_, err = m.Events()
	}
	return err
}

// line returns the next line that is not blank. Its text is the caller's.
func (r *Reader) line() (line, error) {
	if len(r.back) > 0 {
		l := r.back[0]
		r.back = r.back[1:]
		return l, nil
	}
	for r.err == nil {
		l := line{number: r.number + 1}
		for {
			var part []byte
			part, r.err = r.in.ReadSlice('\n')
			if l.tooLong = l.tooLong || len(l.text)+len(part) > maxLine+1; !l.tooLong {
				l.text = append(l.text, part...)
			}
			if r.err != bufio.ErrBufferFull {
				break
			}
		}
		r.number++
		l.text = bytes.TrimSpace(l.text)
		if len(l.text) > 0 || l.tooLong {
			return l, nil
		}
	}
	return line{}, r.err
}
