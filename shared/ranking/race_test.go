//go:build race

package ranking_test

// raceShare divides the users whose events the tests on real data read.
const raceShare = 10
