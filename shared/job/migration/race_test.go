//go:build race

package migration_test

// huge is how many events one user has: few, because the race detector is slow.
const huge = 5_500
