// Package upgrade holds two tests. One runs the engine of an earlier commit and
// the engine of this checkout side by side on one store, as a deployment does
// while instances are replaced. Each must read what the other has written, and
// every answer of both must equal the formula. The other compares the Terraform
// configurations. scripts/check-upgrade runs both.
//
// The data lives in emulators and ends with the tests.
package upgrade
