package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/store/rowstream"
	"github.com/affinityengine/affinity/shared/wire"
)

const (
	columnSegmentManifest = "m"
	columnSegmentPart     = "d"
)

// The kinds of rows of a part, in keys.
var segmentKinds = map[segment.Kind]string{
	segment.Bucket: "h", segment.Index: "i", segment.Tokens: "t", segment.Untils: "u", segment.Values: "n",
	segment.SetOuts: "o",
}

// segmentPrefix begins the keys of one kind of rows of an app: v lists, p other rows of
// parts, f parts of generations that are being built, s sizes, x exports.
func segmentPrefix(app, kind string) string { return app + "," + kind + "," }

func segmentManifestKey(app string) string { return app + ",manifest" }

func segmentPartKey(app string, row SegmentRow) string {
	return fmt.Sprintf("%s%s,%s,%04x", segmentPrefix(app, "p"), row.Part, segmentKinds[row.Kind], row.N)
}

// segmentListKey returns the key of a list. The lists of all parts of one filter lie side by
// side.
func segmentListKey(app, facet, value string, part segment.PartID) string {
	return segmentPrefix(app, "v") + keyText(facet) + "," + keyText(value) + "," + part.String()
}

// maxKeyText keeps the keys of lists below the 4 KB that Bigtable permits.
const maxKeyText = 1500

// keyText escapes a text for a key. A text too long for a key becomes its hash.
func keyText(s string) string {
	escaped := url.QueryEscape(s)
	if len(escaped) <= maxKeyText {
		return escaped
	}
	sum := sha256.Sum256([]byte(s))
	return "!" + hex.EncodeToString(sum[:]) // QueryEscape leaves no "!"
}

// partOfList returns the part of a key of a list.
func partOfList(key string) (segment.PartID, error) {
	return segment.ParsePartID(key[strings.LastIndexByte(key, ',')+1:])
}

func (s *Store) segments(app string) *bigtable.Table { return s.tables.of(app, allUsers).segments }

// readSegments passes rows of the table. It returns the first error of fn.
func (s *Store) readSegments(ctx context.Context, app string, rows bigtable.RowSet,
	fn func(key string, cells []segment.Cell) error, opts ...bigtable.ReadOption) error {
	err := s.readRows(ctx, s.segments(app), rows, func(r *rowstream.Row) error {
		cells := make([]segment.Cell, len(r.Cells))
		for i, c := range r.Cells {
			cells[i] = segment.Cell{Column: string(c.Qualifier), Value: bytes.Clone(c.Value)}
		}
		return fn(string(r.Key), cells)
	}, opts...)
	if err != nil {
		return fmt.Errorf("read segments of %s: %w", app, err)
	}
	return nil
}

// ReadSegmentManifest reads an app's manifest of segments. An app without one has an empty
// manifest. A damaged manifest is an empty one of its version, so that the next build
// replaces it. The error is wire.ErrNewer if a newer version of the engine wrote it.
func (s Segments) ReadSegmentManifest(ctx context.Context, app string) (segment.Manifest, error) {
	var stored []byte
	err := s.readSegments(ctx, app, bigtable.SingleRow(segmentManifestKey(app)),
		func(_ string, cells []segment.Cell) error {
			stored = cells[0].Value
			return nil
		}, newestCells)
	if err != nil {
		return segment.Manifest{}, err
	}
	m, err := segment.ParseManifest(stored)
	if err != nil && !errors.Is(err, wire.ErrNewer) {
		s.logger().LogAttrs(ctx, slog.LevelError,
			"the manifest of segments is damaged: the app has none until its next build",
			slog.String("app", app), slog.Any("error", err))
		return segment.Manifest{Version: segment.StoredVersion(stored)}, nil
	}
	if err != nil {
		return m, fmt.Errorf("read segments of %s: %w", app, err)
	}
	return m, nil
}

// SwapSegmentManifest stores a manifest as the version after the given one, if the stored
// manifest has that version: 0 means that there is none. It returns false if it has
// another, or if the first answer was lost; in the second case it may have been replaced.
func (s Segments) SwapSegmentManifest(ctx context.Context, app string, version int64,
	m segment.Manifest) (bool, error) {
	m.Version = version + 1
	value, err := m.Encode()
	if err != nil {
		return false, err
	}
	set := bigtable.NewMutation()
	set.DeleteCellsInColumn(familyManifest, columnSegmentManifest)
	set.Set(familyManifest, columnSegmentManifest, bigtable.ServerTime, value)
	from, to := segment.ManifestBetween(version)
	if version == 0 {
		from, to = []byte{0}, nil // anything
	}
	current := bigtable.ChainFilters(column(familyManifest, columnSegmentManifest), bigtable.LatestNFilter(1),
		bigtable.ValueRangeFilter(from, to))
	cond := bigtable.NewCondMutation(current, set, nil)
	if version == 0 {
		cond = bigtable.NewCondMutation(current, nil, set)
	}
	var matched bool
	err = retryAtomic(ctx, func() error {
		return s.segments(app).Apply(ctx, segmentManifestKey(app), cond, bigtable.GetCondMutationResult(&matched))
	})
	if err != nil {
		return false, fmt.Errorf("swap the manifest of segments of %s: %w", app, err)
	}
	return matched != (version == 0), nil
}

// writeSegments writes one row of the table in place of what a column of it holds.
func (s *Store) writeSegment(ctx context.Context, app, key, family, column string, value []byte) error {
	m := bigtable.NewMutation()
	m.Set(family, column, bigtable.Now(), value)
	if err := s.segments(app).Apply(ctx, key, m); err != nil {
		return fmt.Errorf("write segments of %s: %w", app, err)
	}
	return nil
}
