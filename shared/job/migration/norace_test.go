//go:build !race

package migration_test

// huge is how many events one user has: many batches, and several checkpoints
// of a verification.
const huge = 20_000
