package segment

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/wire"
)

// Manifest names the parts that queries read. A job replaces it whole.
type Manifest struct {
	// Version grows by one with each manifest of an app. 0: the app has none.
	Version int64 `json:"-"`
	// Of the profiles in all parts: see Scoring.
	ScoringVersion int64               `json:"scoringVersion"`
	RetentionDays  int                 `json:"retentionDays"`
	HalfLives      []strategy.HalfLife `json:"halfLives,omitempty"`
	// Generation is the build that made the base parts, Job its job.
	Generation string `json:"generation"`
	Job        string `json:"job,omitempty"`
	BuiltAt    int64  `json:"builtAt"` // ms: when the build ended
	// Since (ms) is when segments were turned on before the build. While they are off
	// nobody lists changes, so a manifest of another time says nothing.
	Since int64 `json:"since,omitempty"`
	// Holdout says which users were held out of all parts, as package experiment has it. "": none.
	Holdout string `json:"holdout,omitempty"`
	// Faulty counts the users whom the build left out because their log is damaged.
	Faulty int64 `json:"faulty,omitempty"`
	// Parts are the base parts, by From, then the deltas, newest last.
	Parts []Part `json:"parts"`
}

const manifestHead = 9 // format and version

// Encode returns the stored form of a manifest.
func (m Manifest) Encode() ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode manifest of segments: %w", err)
	}
	return wire.Seal(append(manifestPrefix(m.Version), text...), 0), nil
}

func manifestPrefix(version int64) []byte {
	return binary.BigEndian.AppendUint64([]byte{format}, uint64(version))
}

// ManifestBetween returns the bounds of the stored forms of manifests of a version: from
// is included, to is not.
func ManifestBetween(version int64) (from, to []byte) {
	return manifestPrefix(version), manifestPrefix(version + 1)
}

// StoredVersion returns the version of a stored manifest, damaged or not. It is 0 for
// nothing and for what is no manifest of this format.
func StoredVersion(b []byte) int64 {
	if len(b) < manifestHead || b[0] != format {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b[1:]))
}

// ParseManifest decodes what Encode wrote; nothing is an empty manifest. The error is
// wire.ErrNewer if a newer version of the engine wrote it.
func ParseManifest(b []byte) (Manifest, error) {
	if len(b) == 0 {
		return Manifest{}, nil
	}
	m := Manifest{Version: StoredVersion(b)}
	if err := parseJSON(b, manifestHead, &m); err != nil {
		return Manifest{}, fmt.Errorf("read manifest of segments: %w", err)
	}
	return m, nil
}

// EncodePart returns the stored form of the description of a part.
func EncodePart(p Part) ([]byte, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode description of part %s: %w", p.ID, err)
	}
	return wire.Seal(append([]byte{format}, text...), 0), nil
}

// ParsePart decodes what EncodePart wrote.
func ParsePart(b []byte) (Part, error) {
	var p Part
	if err := parseJSON(b, 1, &p); err != nil {
		return Part{}, fmt.Errorf("read description of a part: %w", err)
	}
	return p, nil
}

// parseJSON decodes the JSON behind the head of a value.
func parseJSON(b []byte, head int, to any) error {
	r, err := unseal(b)
	if err != nil {
		return err
	}
	if len(r.B) < head {
		return wire.ErrDamaged
	}
	if err := json.Unmarshal(r.B[head:], to); err != nil {
		return fmt.Errorf("%w: %w", wire.ErrDamaged, err)
	}
	return nil
}
