package segment

import (
	"slices"

	"github.com/affinityengine/affinity/shared/wire"
)

// Seal returns a stored value of this content.
func Seal(content []byte) []byte { return wire.Seal(append([]byte{format}, content...), 0) }

// Reseal gives a stored value another format.
func Reseal(value []byte, format byte) []byte {
	content := slices.Clone(value[:len(value)-4])
	content[0] = format
	return wire.Seal(content, 0)
}
