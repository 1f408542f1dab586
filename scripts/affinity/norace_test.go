//go:build !race

package main

// raceShare divides what the longest tests do.
const raceShare = 1

// raceFlag builds as this was built: dependencies are then compiled already.
const raceFlag = "-race=false"
