//go:build !race

package main

// raceShare divides what the longest tests do.
const raceShare = 1
