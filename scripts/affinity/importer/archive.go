package importer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/archive"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/intake/export"
)

// Archive is what to restore.
type Archive struct {
	Files []string
	App   string
	// Without are users whose events stay in the archive.
	Without map[string]bool
}

// ArchiveAnswer counts what was restored.
type ArchiveAnswer struct {
	api.ImportAnswer
	Others  int // messages of other apps
	Without int // events of users who were left out
}

// ArchiveFiles returns the files of paths, sorted. Of a folder, these are the files in
// it, and in its folders, that have the name of an archive's.
func ArchiveFiles(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		found := 0
		err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && (name == path || strings.HasSuffix(name, ".ndjson") ||
				strings.HasSuffix(name, ".ndjson.gz")) {
				files, found = append(files, name), found+1
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read archive: %w", err)
		}
		if found == 0 {
			return nil, fmt.Errorf("read archive: %s holds no file whose name ends with .ndjson or .ndjson.gz", path)
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// Users reads user tokens, one a line.
func Users(src *Source) (map[string]bool, error) {
	users := map[string]bool{}
	for {
		l, err := src.next()
		if errors.Is(err, io.EOF) {
			return users, nil
		}
		if err != nil {
			return nil, err
		}
		if !event.ValidUserToken(string(l.text)) {
			return nil, fmt.Errorf("%s:%d: %.140q is no user token", src.name, l.number, l.text)
		}
		users[string(l.text)] = true
	}
}

// Archive restores the events of an archive, each in its best write. So it reads the
// files twice: first it looks for re-enrichments, which replace what the message of an
// event says, wherever they are. Of each re-enriched event of the app it keeps some tens
// of bytes.
func (im *Importer) Archive(ctx context.Context, a Archive) (total ArchiveAnswer, err error) {
	r := restore{Archive: a, better: map[[16]byte]archive.Rank{}, lines: &im.lines}
	im.begin()
	for _, path := range a.Files {
		if err := r.open(path, func(*Source) error { return r.index(ctx) }); err != nil {
			return total, err
		}
	}
	for _, path := range a.Files {
		err := r.open(path, func(src *Source) error {
			answer, err := im.restoreEvents(ctx, src, byUser(r.next))
			total.AddCounts(answer)
			return err
		})
		total.Others, total.Without = r.others, r.without
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// restore reads the files of an archive, one after the other.
type restore struct {
	Archive
	messages *archive.Reader
	pending  []line
	lines    *tally
	// better are the best re-enrichments of events, by place.
	better          map[[16]byte]archive.Rank
	others, without int
}

// open reads a file.
func (r *restore) open(path string, read func(*Source) error) error {
	src, err := Open(path, nil)
	if err != nil {
		return err
	}
	if err := src.begin(); err != nil {
		return errors.Join(src.fault(err), src.Close())
	}
	r.messages, r.pending = archive.NewReader(src.text), nil
	return errors.Join(read(src), src.Close())
}

// index notes the re-enrichments of a file.
func (r *restore) index(ctx context.Context) error {
	for ctx.Err() == nil {
		m, _, err := r.messages.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			continue // next names it
		}
		if m.App != r.App || m.Kind != bus.Reenriched {
			continue
		}
		lines, err := archive.Lines(m)
		if err != nil {
			continue // next names it
		}
		for _, l := range lines {
			key := keyOf(l.Place)
			if best, ok := r.better[key]; !ok || l.Rank.Better(best) {
				r.better[key] = l.Rank
			}
		}
	}
	return ctx.Err()
}

func keyOf(p enrich.Place) [16]byte {
	return sha128(p.User + "," + strconv.FormatInt(p.Time, 10) + "," + p.ID)
}

// sha128 is a hash of which two texts never have the same one.
func sha128(text string) [16]byte {
	sum := sha256.Sum256([]byte(text))
	return [16]byte(sum[:16])
}

// next returns the next event of the file as a line of an export, with the number of
// its message's first line.
func (r *restore) next() (line, error) {
	for len(r.pending) == 0 {
		m, number, err := r.messages.Next()
		var fault *archive.Fault
		switch {
		case errors.As(err, &fault):
			return line{number: fault.Line, fault: fault.Reason}, nil
		case err != nil: // io.EOF
			return line{}, err
		case m.App != r.App:
			r.others++
			continue
		}
		lines, err := archive.Lines(m)
		if err != nil {
			return line{number: number, fault: err.Error()}, nil
		}
		for _, l := range lines {
			if err := r.add(number, l); err != nil {
				return line{}, err
			}
		}
	}
	l := r.pending[0]
	r.pending = r.pending[1:]
	return l, nil
}

func (r *restore) add(number int, l archive.Line) error {
	if r.Without[l.Place.User] {
		r.without++
		r.lines.add(Tally{Read: 1, Skipped: 1})
		return nil
	}
	if best, ok := r.better[keyOf(l.Place)]; ok && best.Better(l.Rank) {
		r.lines.add(Tally{Read: 1, Equal: 1})
		return nil
	}
	text, err := export.Encode(api.ExportLine{Event: l.Event})
	r.pending = append(r.pending, line{number: number, user: l.Place.User, text: bytes.TrimSuffix(text, []byte("\n"))})
	return err
}
