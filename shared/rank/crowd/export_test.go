package crowd

import "github.com/affinityengine/affinity/shared/wire"

// Reseal appends a checksum to the content of a value.
func Reseal(content []byte) []byte { return wire.Seal(content, 0) }

// Waiting is the number of objects that a Counter holds of waiting events.
func (c *Counter) Waiting() int { return len(c.objects) }
