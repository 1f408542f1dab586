package backup

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A stream is a tar of the file about, the files of a source below data/, and the file end.
const (
	aboutFile = "about"
	dataDir   = "data/"
	endFile   = "end"
)

// Send writes a source as a stream.
func Send(w io.Writer, s Source) error {
	about, err := json.Marshal(s.About)
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	add := func(name string, size int64, content io.Reader) error {
		if err := out.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600}); err != nil {
			return err
		}
		_, err := io.Copy(out, content)
		return err
	}
	if err := out.WriteHeader(&tar.Header{Name: aboutFile, Size: int64(len(about)), Mode: 0o600}); err != nil {
		return err
	}
	if _, err := out.Write(about); err != nil {
		return err
	}
	err = s.Each(func(name string, size int64, content io.Reader) error { return add(dataDir+name, size, content) })
	if err != nil {
		return err
	}
	return errors.Join(out.WriteHeader(&tar.Header{Name: endFile, Mode: 0o600}), out.Close())
}

// Receive returns the source of a stream, whose files can be read once.
func Receive(r io.Reader) (s Source, err error) {
	in := tar.NewReader(r)
	head, err := in.Next()
	if err == nil && head.Name != aboutFile {
		err = fmt.Errorf("it begins with %q", head.Name)
	}
	if err == nil {
		err = json.NewDecoder(in).Decode(&s.About)
	}
	if err != nil {
		return s, fmt.Errorf("the engine's answer is no backup: %w", err)
	}
	s.Each = func(take func(string, int64, io.Reader) error) error {
		for {
			head, err := in.Next()
			if err != nil {
				return fmt.Errorf("the engine has not sent the whole backup: its log says why (%w)", ended(err))
			}
			if head.Name == endFile {
				return nil
			}
			if err := take(head.Name[min(len(dataDir), len(head.Name)):], head.Size, in); err != nil {
				return ended(err)
			}
		}
	}
	return s, nil
}

// ended returns the error of a stream that has ended early. An end is one only behind the file end.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
