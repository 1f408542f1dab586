package crowd

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/wire"
)

// Manifest names the generations of an index's statistics. Readers use the
// current one. A job swaps the manifest whole once a generation is complete, so
// a generation that no manifest names is never read.
type Manifest struct {
	Format  int        `json:"format"`
	Current Generation `json:"current"`
	// Previous is the generation that Current has replaced, or "". Its rows stay
	// until the next swap: readers that began before the swap still read them.
	Previous string `json:"previous,omitempty"`
}

// Generation is one build of the statistics of an index.
type Generation struct {
	// Name is the part of row keys that tells generations apart. Names sort by
	// the start of their builds.
	Name string `json:"name"`
	Job  string `json:"job"`
	// AsOf is the instant of the statistics, BuiltAt the time of the swap; in ms.
	AsOf    int64 `json:"asOf"`
	BuiltAt int64 `json:"builtAt"`
	// HalfLife is that of the decayed counts in ms, 0 if events do not age.
	HalfLife float64 `json:"halfLife"`
	// ScoringVersion is that of the strategy whose events count.
	ScoringVersion int64 `json:"scoringVersion"`
	Objects        int   `json:"objects"` // of the catalog
	Events         int64 `json:"events"`  // as in Index
	Users          int64 `json:"users"`   // as in Index
	// Share is the share of users that the statistics come from, 1 for all. Read
	// is the number of events of these users in the window, of any kind.
	Share float64 `json:"share"`
	Read  int64   `json:"read"`
}

// Sampled reports whether a generation comes from a sample of the users.
func (g Generation) Sampled() bool { return g.Share < 1 }

// Index returns the statistics of the generation, before any count or frequency
// is added.
func (g Generation) Index() Index {
	x := Index{
		AsOf: g.AsOf, HalfLife: g.HalfLife, Objects: g.Objects, Events: g.Events, Users: g.Users, Sampled: g.Sampled(),
	}
	if g.HalfLife == 0 {
		x.HalfLife = math.Inf(1)
	}
	return x
}

// maxAhead is how far ahead of the clock a right one can have built a generation.
const maxAhead = time.Hour

// Supersedes reports whether the generation is newer than one of a name that a build makes
// now. A generation that was built ahead of now is that of a clock that was wrong, and newer
// than nothing.
func (g Generation) Supersedes(name string, now time.Time) bool {
	return g.Name > name && g.BuiltAt <= now.Add(maxAhead).UnixMilli()
}

// GenerationName returns the name of the generation that a job builds.
func GenerationName(started time.Time, job string) string {
	return fmt.Sprintf("g%012x-%s", max(started.UnixMilli(), 0), job)
}

// ValidGeneration reports whether a part of a row key can name a generation.
func ValidGeneration(name string) bool { return strings.HasPrefix(name, "g") }

// manifestFormat is the number of the form of a manifest.
const manifestFormat = 1

// Encode returns the stored form of a manifest.
func (m Manifest) Encode() ([]byte, error) {
	m.Format = manifestFormat
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode manifest of crowd statistics: %w", err)
	}
	return b, nil
}

// parseManifest decodes what Encode wrote; nothing is an empty manifest. The
// error is wire.ErrNewer if a newer version of the engine wrote it.
func parseManifest(b []byte) (Manifest, error) {
	if len(b) == 0 {
		return Manifest{}, nil
	}
	var m Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return Manifest{}, fmt.Errorf("read manifest of crowd statistics: %w", err)
	}
	switch {
	case m.Format > manifestFormat:
		return Manifest{}, fmt.Errorf("read manifest of crowd statistics: format %d: %w", m.Format, wire.ErrNewer)
	case m.Format < 1, m.Current.Name != "" && !ValidGeneration(m.Current.Name):
		return Manifest{}, fmt.Errorf("read manifest of crowd statistics: %w", wire.ErrDamaged)
	}
	return m, nil
}
