package crowd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/affinityengine/affinity/shared/wire"
)

// Manifests keep the manifests of indexes. store.Crowd does.
type Manifests interface {
	// ReadCrowdManifest returns the stored manifest of an index, nil if it has none.
	ReadCrowdManifest(ctx context.Context, app, index string) ([]byte, error)
	// SwapCrowdManifest replaces the manifest of an index if the stored one is still the given one. It
	// returns false if it is not, or if the first answer was lost; in the second case it may have
	// replaced it.
	SwapCrowdManifest(ctx context.Context, app, index string, stored, value []byte) (bool, error)
}

// ReadManifest reads the manifest of an index's statistics and its stored bytes, for SwapManifest. An
// index without statistics has an empty manifest. A damaged manifest is an empty one too, so that the
// next build replaces it. The error is wire.ErrNewer if a newer version of the engine wrote it.
func ReadManifest(ctx context.Context, from Manifests, log *slog.Logger, app, index string) (Manifest, []byte, error) {
	value, err := from.ReadCrowdManifest(ctx, app, index)
	if err != nil {
		return Manifest{}, nil, err
	}
	m, err := parseManifest(value)
	if err != nil && !errors.Is(err, wire.ErrNewer) {
		log.LogAttrs(ctx, slog.LevelError,
			"the manifest of crowd statistics is damaged: the index has none until its next build",
			slog.String("app", app), slog.String("index", index), slog.Any("error", err))
		return Manifest{}, value, nil
	}
	if err != nil {
		err = fmt.Errorf("%s/%s: %w", app, index, err)
	}
	return m, value, err
}

// SwapManifest replaces the manifest of an index, as Manifests says, if its stored bytes are still
// those of ReadManifest.
func SwapManifest(ctx context.Context, in Manifests, app, index string, stored []byte, m Manifest) (bool, error) {
	value, err := m.Encode()
	if err != nil {
		return false, err
	}
	return in.SwapCrowdManifest(ctx, app, index, stored, value)
}

// ErrTooLarge means that the statistics of an index exceed the memory that the reader has for
// them.
var ErrTooLarge = errors.New("larger than the memory for the statistics of an index")

// ReadIndex reads the statistics of all objects of a generation. scan passes the cells of its packed
// counts and those of its document frequencies, of some PackedBytes each. The error is ErrTooLarge if the
// statistics take more than maxBytes in memory; the read then ends at the latest an eighth above them.
func (g Generation) ReadIndex(maxBytes int, scan func(counts, frequencies func(cell []byte) error) error) (Index, error) {
	x, sized := g.Index(), 0 // entries when the size was last taken, which visits them all
	within := func(add func([]byte) error) func([]byte) error {
		return func(cell []byte) error {
			if err := add(cell); err != nil {
				return err
			}
			if n := len(x.Counts) + len(x.Frequencies); n-sized > sized/8 {
				if sized = n; x.Size() > maxBytes {
					return ErrTooLarge
				}
			}
			return nil
		}
	}
	err := scan(within(x.AddCounts), within(x.AddFrequencies))
	if err == nil && x.Size() > maxBytes {
		err = fmt.Errorf("read crowd statistics: generation %s: %w", g.Name, ErrTooLarge)
	}
	if err != nil {
		return Index{}, err
	}
	return x, nil
}

// ParseObjects decodes the pairs of objects, by objectID.
func ParseObjects(stored map[string][]byte) (map[string]Object, error) {
	objects := make(map[string]Object, len(stored))
	for id, value := range stored {
		o, err := ParseObject(value)
		if err != nil {
			return nil, fmt.Errorf("object %q: %w", id, err)
		}
		objects[id] = o
	}
	return objects, nil
}
