package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"maps"
	"path"
	"slices"
	"time"
)

// file is a file of an archive.
type file struct {
	data    []byte
	program bool
}

func (f file) mode() int64 {
	if f.program {
		return 0o755
	}
	return 0o644
}

// tarball returns a compressed tar of files by their paths, in one folder. In the folder "." it has the folders of
// the files too. Its bytes depend on the files, the folder, the time and the version of Go.
func tarball(folder string, files map[string]file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	parents := map[string]bool{}
	for name := range files {
		for dir := path.Dir(name); folder == "." && dir != "."; dir = path.Dir(dir) {
			parents[dir] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(parents)) {
		if err := w.WriteHeader(&tar.Header{Name: folder + "/" + name + "/", Typeflag: tar.TypeDir, Mode: 0o755,
			ModTime: at, Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		if err := w.WriteHeader(&tar.Header{Name: folder + "/" + name, Mode: f.mode(), Size: int64(len(f.data)),
			ModTime: at, Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// zipped is tarball for Windows.
func zipped(folder string, files map[string]file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		header := &zip.FileHeader{Name: path.Join(folder, name), Method: zip.Deflate, Modified: at}
		header.SetMode(0o644)
		if f.program {
			header.SetMode(0o755)
		}
		part, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := part.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
