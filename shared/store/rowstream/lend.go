package rowstream

import (
	"bytes"
	"runtime/debug"
	"slices"
)

// lend calls fn with the bytes of a message. Under the race detector it destroys them
// afterwards: a test fails whose code keeps a row.
func lend(b []byte, fn func([]byte) error) error {
	if !raceDetector {
		return fn(b)
	}
	lent := bytes.Clone(b)
	defer func() {
		for i := range lent {
			lent[i] = 0xAA
		}
	}()
	return fn(lent)
}

// raceDetector reports whether the program was built with -race. The zip of a function
// holds the files of one build, so files with build tags would not do.
var raceDetector = func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}()
