//go:build race

package apply_test

// raced reports whether the race detector runs, under which code is ten times
// slower: then some tests do less of the same.
const raced = true
