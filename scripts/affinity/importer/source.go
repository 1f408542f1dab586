package importer

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/affinityengine/affinity/shared/api"
)

// maxLine is the longest line that is read, in bytes. The import route takes no
// larger body, so a longer line could never be imported.
const maxLine = min(8_000_000, api.MaxImportBody)

// Source is one input of NDJSON, plain or gzip, which is read as a stream.
type Source struct {
	name   string       // for messages
	size   int64        // bytes of the file on disk; -1 if unknown
	read   atomic.Int64 // bytes of it that were read
	raw    *bufio.Reader
	lines  *bufio.Reader        // raw, unzipped; nil before the first read
	peeked func() (line, error) // what peek found
	last   int                  // number of the last line read, from 1
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
	s.raw = bufio.NewReader(countingReader{r, &s.read})
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
}

// begin detects gzip by its first bytes and skips a byte order mark.
func (s *Source) begin() error {
	magic, err := s.raw.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	s.lines = bufio.NewReaderSize(s.raw, 1<<16)
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(s.raw)
		if err != nil {
			return err
		}
		s.lines = bufio.NewReaderSize(unzipped, 1<<16)
	}
	if mark, err := s.lines.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, err = s.lines.Discard(3)
		return err
	}
	return nil // the next read returns any error of this Peek again
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
	for {
		l, err := s.any()
		if err != nil || l.tooLong || len(l.text) > 0 {
			return l, err
		}
	}
}

// any returns the next line, blank or not.
func (s *Source) any() (line, error) {
	if s.lines == nil {
		if err := s.begin(); err != nil {
			return line{}, s.fault(err)
		}
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
		return l, nil
	}
}

func (s *Source) fault(err error) error {
	if errors.Is(err, context.Canceled) {
		return err // interrupted: the input is not at fault
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
