package queue

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

const (
	// hashBytes of the parts' SHA-256 make a name: 128 bits, so that two pieces
	// of work never share a name by chance.
	hashBytes = 16
	// legiblePart is the longest part that is appended to a name as it is.
	legiblePart = 64
	// maxName is the longest name that Cloud Tasks takes.
	maxName = 500
)

// TaskName makes the name of the work that the parts identify: the same parts
// in the same order give the same name, any other parts another name. It begins
// with a hash, because names that begin alike slow a queue down. The parts that
// a name can hold follow, for people who look at the queue; others, such as
// user tokens with + / =, are only in the hash.
func TaskName(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		// The length keeps ("ab", "c") and ("a", "bc") apart. Writing to a hash
		// never fails.
		hash.Write(binary.AppendUvarint(nil, uint64(len(part))))
		hash.Write([]byte(part))
	}
	var name strings.Builder
	name.WriteString(hex.EncodeToString(hash.Sum(nil)[:hashBytes]))
	for _, part := range parts {
		if len(part) <= legiblePart && taskName.MatchString(part) && name.Len()+1+len(part) <= maxName {
			name.WriteString("-" + part)
		}
	}
	return name.String()
}
