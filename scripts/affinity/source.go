package main

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
)

// maxLine is the longest line that is read, in bytes: the import route takes no larger body, so a longer line could never go in.
const maxLine = 8_000_000

// source is one NDJSON input, gzip or plain, read as a stream.
type source struct {
	name  string       // for messages
	size  int64        // bytes in the file as it lies on the disk; -1 where nobody knows
	read  atomic.Int64 // of these, how many were read
	raw   *bufio.Reader
	lines *bufio.Reader        // of raw, unzipped; nil before the first is read
	held  func() (line, error) // what peek found
	last  int                  // number of the line read last, from 1
	file  io.ReadCloser
}

// stdin is standard input, of which a read can be broken off.
type stdin struct {
	*io.PipeReader
	w *io.PipeWriter
}

func newStdin(in io.Reader) stdin {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, in)
		w.CloseWithError(err)
	}()
	return stdin{r, w}
}

// interrupt makes reads of a source that may wait for ever fail with err. Files do not wait.
func (s *source) interrupt(err error) {
	if in, ok := s.file.(stdin); ok {
		in.w.CloseWithError(err)
	}
}

// line is one line that is not blank, without its end.
type line struct {
	number  int // from 1
	text    []byte
	tooLong bool // longer than maxLine: text is missing
}

// openSource opens a file, or standard input for "-".
func (t *tool) openSource(path string) (*source, error) {
	file, err := t.openInput(path)
	if err != nil {
		return nil, err
	}
	name, size := path, int64(-1)
	if path == "-" {
		name = "stdin"
	}
	if f, ok := file.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
	}
	s := newSource(name, file, size)
	s.file = file
	return s, nil
}

// newSource reads from r. Nothing is read yet: it may be a pipe that is silent.
func newSource(name string, r io.Reader, size int64) *source {
	s := &source{name: name, size: size}
	s.raw = bufio.NewReader(countingReader{r, &s.read})
	return s
}

// begin finds out what the input is: gzip when it begins like gzip, perhaps with a byte order mark.
func (s *source) begin() error {
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
	return nil // what else Peek found comes up again
}

// peek returns what next will return, without using it up.
func (s *source) peek() (line, error) {
	l, err := s.next()
	l.text = bytes.Clone(l.text)
	s.held = func() (line, error) { return l, err }
	return l, err
}

// next returns the next line that is not blank, io.EOF at the end. Its text is good until the call after it.
func (s *source) next() (line, error) {
	if held := s.held; held != nil {
		s.held = nil
		return held()
	}
	for {
		l, err := s.any()
		if err != nil || l.tooLong || len(l.text) > 0 {
			return l, err
		}
	}
}

// any returns the next line, blank or not.
func (s *source) any() (line, error) {
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

func (s *source) fault(err error) error {
	if errors.Is(err, context.Canceled) {
		return err // interrupted: nothing is wrong with the input
	}
	return fmt.Errorf("read %s beyond line %d (is it damaged or cut short?): %w", s.name, s.last, err)
}

// close closes the file.
func (s *source) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

type countingReader struct {
	r io.Reader
	n *atomic.Int64
}

func (c countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
