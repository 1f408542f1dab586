// Package profile keeps stored profiles equal to what the log says, while
// writers, readers, folds and deletions run at the same time in many processes.
// PROTOCOL.md beside this file defines the words, draws the three meetings that
// matter, and names the test that shows why each rule is needed.
//
// The data lives in the tables events, users and histories of package store. The
// only lock is the atomicity of one user row. It holds the ticket counter, the
// manifest, the tombstone and the profiles.
//
// # Rules
//
//  1. A writer writes the log first. The log is the truth. A block is a cache of a
//     closed range of the log, and each range is read from one of the two.
//  2. Then one atomic step on the user row draws a ticket and reads the manifest
//     and the tombstone of that instant. The writer reads blocks and log after
//     it, and writes the profile at that ticket. Readers take the profile with the
//     highest ticket, so a slow writer never hides an event.
//  3. An event in a range that a block covers is late. The writer uncovers the
//     range, then draws another ticket: no reader sees the event before that.
//  4. A fold draws a ticket, reads a range, and writes blocks that are never
//     rewritten. It commits them to the manifest only if no ticket was drawn
//     since, or only if its own announcement of the range is still there. A fold
//     deletes nothing. Every other change of a manifest draws a ticket first.
//  5. A reader that computes a profile reads the user row first. It stores the
//     profile at the ticket of that row, never above a refresh that began later.
//  6. A deletion advances the tombstone, draws a ticket, and leaves a cell at that
//     ticket that means "compute". An empty profile would hide newer events.
//  7. Every step may be repeated at any time: after a crash, after a lost answer,
//     for a duplicate. No step is skipped because it seems to have been done.
//
// # Parts
//
// Engine is the public face. Each of its parts is one type that can be read
// alone; an arrow means "uses":
//
//	writer   (refresh.go)   -> logs, tickets, flights, computer, folder
//	reader   (read.go)      -> logs, tickets, computer
//	bulk     (bulk.go)      -> logs, tickets, computer, folder, orphans
//	deletion (deletion.go)  -> orphans
//	computer (compute.go)   -> logs
//	folder   (fold.go)      -> logs, tickets
//
// logs, tickets, flights and orphans use no other part.
package profile
