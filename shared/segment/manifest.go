package segment

import (
	"errors"

	"github.com/affinityengine/affinity/shared/strategy"
)

// ErrNewer means that a newer version of the engine wrote a value in a format that
// this version does not know. The value is not damaged.
var ErrNewer = errors.New("stored in a format this version does not know")

// Manifest names the parts that queries read. A job replaces it whole.
type Manifest struct {
	// Version grows by one with each manifest of an app. 0: the app has none.
	Version int64 `json:"version"`
	// Of the profiles in all parts: see Scoring.
	ScoringVersion int64               `json:"scoringVersion"`
	RetentionDays  int                 `json:"retentionDays"`
	HalfLives      []strategy.HalfLife `json:"halfLives,omitempty"`
	// Generation is the build that made the base parts, Job its job.
	Generation string `json:"generation"`
	Job        string `json:"job,omitempty"`
	BuiltAt    int64  `json:"builtAt"` // ms: when the build ended
	// Faulty counts the users whom the build left out because their log is damaged.
	Faulty int64 `json:"faulty,omitempty"`
	// Parts are the base parts, by From, then the deltas, newest last.
	Parts []Part `json:"parts"`
}

// Encode returns the stored form of a manifest.
func (m Manifest) Encode() ([]byte, error) { return nil, nil }

// ParseManifest decodes what Encode wrote; nothing is an empty manifest. The error is
// ErrNewer if a newer version of the engine wrote it.
func ParseManifest(b []byte) (Manifest, error) { return Manifest{}, nil }

// EncodePart returns the stored form of the description of a part.
func EncodePart(p Part) ([]byte, error) { return nil, nil }

// ParsePart decodes what EncodePart wrote.
func ParsePart(b []byte) (Part, error) { return Part{}, nil }
