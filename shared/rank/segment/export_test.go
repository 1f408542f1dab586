package segment

import "slices"

// Seal returns a stored value of this content.
func Seal(content []byte) []byte { return seal(append([]byte{format}, content...), 0) }

// Reseal gives a stored value another format.
func Reseal(value []byte, format byte) []byte {
	content := slices.Clone(value[:len(value)-checksumSize])
	content[0] = format
	return seal(content, 0)
}
