//go:build race

package migration_test

// huge is how many events one user has: few where the race detector makes each dear.
const huge = 5_500
