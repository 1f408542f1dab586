// Package rows is a Bigtable server that keeps its tables on a Disk (package
// disk): the part of the data and administration APIs that the engine and the
// in-process Bigtable of Google's client library have in common, with the same
// answers. What it does not have it refuses as unimplemented: reads in reverse
// order, aggregates, snapshots, backups and SQL.
//
// A mutation of a row, and all rows of one MutateRows, outlive the process from before
// they are answered. A write collects the superseded cells of the families that it
// touches. So a family that nobody writes keeps cells that are too old.
//
// The cells of a row and a family lie in one value (see encode): the families of
// the engine are small, or are written once.
package rows
