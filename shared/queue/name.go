package queue

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

const (
	// hashBytes is how much of the parts' SHA-256 a name begins with: 128 bits,
	// so that two tasks never share a name by chance.
	hashBytes = 16
	// legiblePart is the longest part that a name shows, in bytes.
	legiblePart = 64
	// maxName is the longest name that Cloud Tasks takes.
	maxName = 500
)

// TaskName makes a task's name from parts that identify its work. The same
// parts in the same order give the same name; any other parts give another
// name. A name begins with a hash, because names with a common prefix slow
// Cloud Tasks down. The parts that a name can hold follow, for people who look
// at the queue. Other parts, such as user tokens with + / =, are only in the
// hash.
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
