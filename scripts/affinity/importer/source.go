package importer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
)

// maxLine is the longest line that is read, in bytes. The import route takes no
// larger body, so a longer line could never be imported.
const maxLine = min(8_000_000, api.MaxImportBody)

// Source is one input, plain or gzip, which is read as a stream. Its first character says
// how it is written: lines of JSON, one list of JSON objects, whose lines are the objects
// by their place in the list, or else a table with a line of names.
type Source struct {
	name  string       // for messages
	size  int64        // bytes of the file on disk; -1 if unknown
	read  atomic.Int64 // bytes of it that were read
	raw   io.Reader
	text  *bufio.Reader // the text of raw; nil before the first read
	lines physical
	back  *physicalLine        // a line that was read too early
	one   func() (line, error) // the next line, of a list or of a table; nil: of lines
	shape shape                // nil: lines stay as they are
	table bool                 // its rows need no conversion
	again []readLine           // what was read, to be read again
	last  int                  // number of the last line read, from 1
	more  []line               // further events of that line
	file  io.ReadCloser
}

// Open opens a file. "-" is stdin.
func Open(path string, stdin io.Reader) (*Source, error) {
	if path == "-" {
		file := newPipe(stdin)
		s := NewSource("stdin", file, -1)
		s.file = file
		return s, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open input: %w", err)
	}
	size := int64(-1)
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	s := NewSource(path, file, size)
	s.file = file
	return s, nil
}

// NewSource returns a source of the lines of r, which has size bytes, or -1 if
// that is unknown. It reads nothing yet: r may be a pipe without input.
func NewSource(name string, r io.Reader, size int64) *Source {
	s := &Source{name: name, size: size}
	s.raw = countingReader{r, &s.read}
	return s
}

// Close closes the file, if there is one.
func (s *Source) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// Interrupt makes a blocked read of standard input fail with err. Reads of files
// do not block.
func (s *Source) Interrupt(err error) {
	if in, ok := s.file.(pipe); ok {
		in.w.CloseWithError(err)
	}
}

// firstLines is how far First looks.
const firstLines = 1000

// readLine is what next returned.
type readLine struct {
	line line
	err  error
}

// First returns the text of the first line that is neither bad nor left out, and leaves all
// lines to be read again. The text is nil if there is none among the first ones.
func (s *Source) First() ([]byte, error) {
	var ahead []readLine
	for len(ahead) < firstLines {
		l, err := s.next()
		l.text = bytes.Clone(l.text)
		ahead = append(ahead, readLine{l, err})
		if err != nil || len(l.text) > 0 {
			s.again = ahead
			return l.text, err
		}
	}
	s.again = ahead
	return nil, nil
}

// pipe is standard input with reads that can be interrupted.
type pipe struct {
	*io.PipeReader
	w *io.PipeWriter
}

func newPipe(in io.Reader) pipe {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, in)
		w.CloseWithError(err)
	}()
	return pipe{r, w}
}

// line is one line that is not blank, without its line break.
type line struct {
	number  int // from 1
	text    []byte
	tooLong bool // longer than maxLine; text is missing
	// fault says why the line is bad, before the engine has seen it; text is missing.
	fault   string
	kind    *kindError // of a fault: the type of these events is not known
	skipped bool       // left out on request; text is missing
	equal   bool       // to an earlier line
	user    string     // of the event; "" if nobody has asked, or the line is bad
}

// failed is the line if it cannot be converted.
func (l line) failed(err error) line {
	failed := line{number: l.number}
	if errors.Is(err, errSkipped) {
		failed.skipped = true
		return failed
	}
	failed.fault = err.Error()
	errors.As(err, &failed.kind)
	return failed
}

// reason says why the line is bad before the engine has seen it, "" if it is not.
func (l line) reason() string {
	if l.tooLong || len(l.text) > maxLine {
		return fmt.Sprintf("the line is longer than %d bytes", maxLine)
	}
	return l.fault
}

// begin finds out how the file is written.
func (s *Source) begin() (err error) {
	if s.text, err = client.Text(s.raw); err != nil {
		return err
	}
	s.lines = physical{in: s.text}
	first := s.firstByte()
	switch {
	case first == '[':
		s.one = s.list()
	case s.shape == nil || first == 0:
		return nil
	case first != '{':
		s.table = true
		s.one, err = openTable(s.text, s.shape)
		return err
	}
	if s.shape != nil {
		return s.shape.prepare()
	}
	return nil
}

// firstByte returns the first byte that is no white space, 0 if there is none. The next
// read returns any error again.
func (s *Source) firstByte() byte {
	for i := 0; ; i++ {
		text, err := s.text.Peek(i + 1)
		if err != nil {
			return 0
		}
		if b := text[i]; b != ' ' && b != '\t' && b != '\r' && b != '\n' {
			return b
		}
	}
}

// checked returns a line, as a bad one if its text is not UTF-8. A decoder of JSON would
// replace the bytes that it cannot read.
func (l line) checked() line {
	if reason := fault.NotUTF8(l.text); reason != "" {
		l.text, l.fault = nil, "not valid UTF-8: "+reason
	}
	return l
}

// Newest reads the source to its end and returns the time (ms) of its newest event, 0 if
// none has a time. It leaves out times that an import refuses at this time.
func (s *Source) Newest(now time.Time) (int64, error) {
	newest, latest := int64(0), now.Add(event.MaxAhead).UnixMilli()
	for {
		l, err := s.next()
		if errors.Is(err, io.EOF) {
			return newest, nil
		}
		if err != nil {
			return 0, err
		}
		var e struct {
			Timestamp json.RawMessage `json:"timestamp"`
		}
		if json.Unmarshal(l.text, &e) != nil { // the import names bad lines
			continue
		}
		if ms, err := event.ParseTime(event.TimeText(e.Timestamp)); err == nil && ms <= latest {
			newest = max(newest, ms)
		}
	}
}

// As makes the source return events of other forms as events. Call it before the first
// read.
func (s *Source) As(f Form) { s.shape = &f }

// AsObjects makes the source return objects of other forms as objects. Call it before the
// first read.
func (s *Source) AsObjects(f ObjectForm) { s.shape = &f }

// ofObjects is AsObjects of the usual form, unless another one is set.
func (s *Source) ofObjects() {
	if s.shape == nil {
		s.AsObjects(ObjectForm{})
	}
}

// notes says what the source has read in a way that its reader should know, a line each.
func (s *Source) notes() []string {
	if f, ok := s.shape.(*ObjectForm); ok {
		return f.notes()
	}
	return nil
}

// next returns the next line that is not blank, io.EOF at the end. Its text is
// valid until the following call.
func (s *Source) next() (line, error) {
	if len(s.again) > 0 {
		read := s.again[0]
		s.again = s.again[1:]
		return read.line, read.err
	}
	if len(s.more) > 0 {
		l := s.more[0]
		s.more = s.more[1:]
		return l, nil
	}
	for {
		l, err := s.any()
		if err != nil || l.tooLong || l.fault != "" || l.skipped || len(l.text) > 0 {
			return s.converted(l), err
		}
	}
}

// converted returns a line of JSON in the form of the engine, the first one if it is
// several.
func (s *Source) converted(l line) line {
	if s.shape == nil || s.table || len(l.text) == 0 {
		return l
	}
	all, err := s.shape.convert(l.text)
	if err != nil {
		return l.failed(err)
	}
	for _, text := range all[1:] {
		s.more = append(s.more, line{number: l.number, text: text})
	}
	l.text = all[0]
	return l
}

// any returns the next line, blank or not.
func (s *Source) any() (line, error) {
	if s.text == nil {
		if err := s.begin(); err != nil {
			return line{}, s.fault(err)
		}
	}
	if s.one != nil {
		l, err := s.one()
		if err == nil {
			s.last = l.number
		} else if err != io.EOF {
			err = s.fault(err)
		}
		return l, err
	}
	read, err := s.physical()
	if err != nil {
		return line{}, err
	}
	l := line{number: read.number, text: bytes.TrimSpace(read.text), tooLong: read.tooLong}
	if s.shape != nil && len(l.text) == 1 && l.text[0] == '{' {
		return s.spread(l)
	}
	return l.checked(), nil
}

// physical returns the next line of the file, io.EOF at the end.
func (s *Source) physical() (physicalLine, error) {
	if s.back != nil {
		l := *s.back
		s.back = nil
		return l, nil
	}
	l, err := s.lines.next()
	if err != nil && err != io.EOF {
		err = s.fault(err)
	}
	if err == nil {
		s.last = l.number
	}
	return l, err
}

func (s *Source) fault(err error) error {
	if errors.Is(err, context.Canceled) {
		return err // interrupted: the input is not at fault
	}
	var columns columnsError
	var format *fault.Error
	if errors.As(err, &columns) || errors.As(err, &format) {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return fmt.Errorf("read %s beyond line %d (is it damaged or cut short?): %w", s.name, s.last, err)
}

// countingReader counts the bytes that were read.
type countingReader struct {
	r io.Reader
	n *atomic.Int64
}

func (c countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
