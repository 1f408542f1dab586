package measure

import "fmt"

// Common is what every measurement can be asked for.
type Common struct {
	// InProcess runs the server in this process: processor time and memory are
	// then those of both.
	InProcess bool
	// Progress receives a line before each step; nil discards it.
	Progress func(string)
}

func (c Common) progress(format string, args ...any) {
	if c.Progress != nil {
		c.Progress(fmt.Sprintf(format, args...))
	}
}
