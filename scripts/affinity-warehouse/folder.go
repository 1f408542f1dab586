package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// summary is the file export.json of a folder. Only a complete export has it.
type summary struct {
	App string `json:"app"`
	// AsOf is when the dump began. Events that were received later may be missing.
	AsOf     time.Time `json:"asOf"`
	Events   int64     `json:"events"`
	Profiles int64     `json:"profiles"`
	Segments int64     `json:"segments"`
}

const summaryFile = "export.json"

// fileRows is how many rows a file has at most. Tests lower it.
var fileRows int64 = 1_000_000

// groupRows and groupBytes are how many rows and bytes a group of rows has at most. The writer has a group in memory.
const (
	groupRows  = 50_000
	groupBytes = 48 << 20
)

// table writes the rows of one kind to files in a folder.
type table[T any] struct {
	folder, name string
	size         func(*T) int

	files  []string
	file   *os.File
	writer *parquet.GenericWriter[T]
	rows   int64 // of the file
	group  int   // rows of the group
	bytes  int   // of the group
	total  int64
}

// add adds a row.
func (t *table[T]) add(row T) error {
	if t.writer == nil || t.rows == fileRows {
		if err := t.next(); err != nil {
			return err
		}
	}
	if _, err := t.writer.Write([]T{row}); err != nil {
		return fmt.Errorf("write %s: %w", t.file.Name(), err)
	}
	t.rows, t.total = t.rows+1, t.total+1
	t.group, t.bytes = t.group+1, t.bytes+t.size(&row)
	if t.group < groupRows && t.bytes < groupBytes {
		return nil
	}
	t.group, t.bytes = 0, 0
	if err := t.writer.Flush(); err != nil {
		return fmt.Errorf("write %s: %w", t.file.Name(), err)
	}
	return nil
}

// next ends the file and begins another one.
func (t *table[T]) next() error {
	if err := t.close(); err != nil {
		return err
	}
	path := filepath.Join(t.folder, fmt.Sprintf("%s-%05d.parquet", t.name, len(t.files)))
	file, err := create(path)
	if err != nil {
		return err
	}
	t.files, t.file, t.rows, t.group, t.bytes = append(t.files, path), file, 0, 0, 0
	t.writer = writerTo[T](file)
	return nil
}

// close ends the file.
func (t *table[T]) close() error {
	if t.writer == nil {
		return nil
	}
	err := errors.Join(t.writer.Close(), t.file.Sync(), t.file.Close())
	t.writer = nil
	if err != nil {
		return fmt.Errorf("write %s: %w", t.file.Name(), err)
	}
	return nil
}

// end ends the last file. Without rows there is one file, so that queries find the columns.
func (t *table[T]) end() error {
	if len(t.files) == 0 {
		if err := t.next(); err != nil {
			return err
		}
	}
	return t.close()
}

// drop writes again the files with rows that drop reports, without these rows.
func (t *table[T]) drop(drop func(*T) bool) error {
	for _, path := range t.files {
		found := false
		if err := scan(path, func(row *T) error { found = found || drop(row); return nil }); err != nil {
			return err
		}
		if !found {
			continue
		}
		again := &table[T]{folder: t.folder, name: filepath.Base(path) + ".again", size: t.size}
		err := scan(path, func(row *T) error {
			if drop(row) {
				t.total--
				return nil
			}
			return again.add(*row)
		})
		if err == nil {
			err = again.end()
		}
		if err == nil {
			err = os.Rename(again.files[0], path)
		}
		if err != nil {
			return fmt.Errorf("leave out deleted users: %w", err)
		}
	}
	return nil
}

func writerTo[T any](w io.Writer) *parquet.GenericWriter[T] {
	return parquet.NewGenericWriter[T](w, parquet.Compression(&zstd.Codec{}),
		parquet.CreatedBy("affinity-warehouse", "", ""))
}

// scan reads the rows of a file. f must not keep them.
func scan[T any](path string, f func(*T) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // read only
	info, err := file.Stat()
	if err != nil {
		return err
	}
	opened, err := parquet.OpenFile(file, info.Size())
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	reader := parquet.NewGenericReader[T](opened)
	defer func() { _ = reader.Close() }()
	rows := make([]T, 128)
	for {
		clear(rows)
		n, err := reader.Read(rows)
		for i := range rows[:n] {
			if err := f(&rows[i]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
}

// create creates a file. Only its owner may read it: it is about persons.
func create(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (s summary) write(folder string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	file, err := create(filepath.Join(folder, summaryFile))
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	return errors.Join(err, file.Sync(), file.Close())
}

func readSummary(folder string) (s summary, err error) {
	text, err := os.ReadFile(filepath.Join(folder, summaryFile))
	if err != nil {
		return s, fmt.Errorf("this is no complete export: %w", err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read %s: %w", summaryFile, err)
	}
	return s, nil
}
