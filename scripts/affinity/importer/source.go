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

	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
)

// maxLine is the longest line that is read, in bytes. The import route takes no
// larger body, so a longer line could never be imported.
const maxLine = min(8_000_000, api.MaxImportBody)

// Source is one input of NDJSON, plain or gzip, which is read as a stream. It may also be
// one list of JSON objects; its lines are then the objects, by their place in the list.
type Source struct {
	name   string       // for messages
	size   int64        // bytes of the file on disk; -1 if unknown
	read   atomic.Int64 // bytes of it that were read
	raw    io.Reader
	lines  *bufio.Reader        // the text of raw; nil before the first read
	one    func() (line, error) // the next line, of a list or of CSV; nil: of lines
	form   *Form                // of events; nil: lines stay as they are
	peeked func() (line, error) // what peek found
	last   int                  // number of the last line read, from 1
	more   []line               // further events of that line
	file   io.ReadCloser
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

// First returns the text of the first line and leaves it to be read again.
func (s *Source) First() ([]byte, error) {
	l, err := s.peek()
	return l.text, err
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
	fault string
	equal bool // to an earlier line
}

// begin finds out how the file is written.
func (s *Source) begin() (err error) {
	if s.lines, err = client.Text(s.raw); err != nil {
		return err
	}
	return s.detect() // the next read returns any error of this Peek again
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
func (s *Source) As(f Form) { s.form = &f }

// detect prepares to read CSV, or a list.
func (s *Source) detect() error {
	if s.form != nil && s.form.CSV {
		t, err := newTable(s.lines, s.form)
		if err != nil {
			return err
		}
		s.one = t.next
		return nil
	}
	first, _ := s.lines.Peek(1)
	if string(first) == "[" {
		s.one = s.list()
	}
	return nil
}

// list returns a function that returns the objects of a list.
func (s *Source) list() func() (line, error) {
	decoder := jsontext.NewDecoder(s.lines, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	begun := false
	return func() (line, error) {
		if !begun {
			begun = true
			if _, err := decoder.ReadToken(); err != nil {
				return line{}, err
			}
		}
		if decoder.PeekKind() == jsontext.KindEndArray {
			return line{}, io.EOF
		}
		value, err := decoder.ReadValue()
		if err != nil {
			return line{}, fmt.Errorf("after object %d of the list: %w", s.last, err)
		}
		if err := value.Compact(); err != nil { // a line has no line breaks
			return line{}, err
		}
		l := line{number: s.last + 1, text: value}
		if len(value) > maxLine {
			l.tooLong, l.text = true, nil
		}
		return l.checked(), nil
	}
}

// peek returns the line that next will return.
func (s *Source) peek() (line, error) {
	l, err := s.next()
	l.text = bytes.Clone(l.text)
	s.peeked = func() (line, error) { return l, err }
	return l, err
}

// next returns the next line that is not blank, io.EOF at the end. Its text is
// valid until the following call.
func (s *Source) next() (line, error) {
	if peeked := s.peeked; peeked != nil {
		s.peeked = nil
		return peeked()
	}
	if len(s.more) > 0 {
		l := s.more[0]
		s.more = s.more[1:]
		return l, nil
	}
	for {
		l, err := s.any()
		if err != nil || l.tooLong || l.fault != "" || len(l.text) > 0 {
			return s.converted(l), err
		}
	}
}

// converted returns a line in the form of the engine, the first one if it is several.
func (s *Source) converted(l line) line {
	if s.form == nil || s.form.CSV || len(l.text) == 0 || !s.form.concerns(l.text) {
		return l
	}
	events, err := s.form.convert(l.text)
	if err != nil {
		return line{number: l.number, fault: err.Error()}
	}
	for _, event := range events[1:] {
		s.more = append(s.more, line{number: l.number, text: event})
	}
	l.text = events[0]
	return l
}

// any returns the next line, blank or not.
func (s *Source) any() (line, error) {
	if s.lines == nil {
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
	var text []byte
	l := line{number: s.last + 1}
	for {
		part, err := s.lines.ReadSlice('\n')
		switch {
		case l.tooLong || len(text)+len(part) > maxLine:
			l.tooLong, text = true, nil
		case text != nil || err == bufio.ErrBufferFull:
			text = append(text, part...)
		default:
			text = part
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err == io.EOF && len(text) == 0 && !l.tooLong {
			return line{}, io.EOF
		}
		if err != nil && err != io.EOF {
			return line{}, s.fault(err)
		}
		s.last = l.number
		l.text = bytes.TrimSpace(text)
		return l.checked(), nil
	}
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
