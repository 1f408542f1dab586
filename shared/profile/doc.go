// Package profile keeps stored profiles equal to the log while writers, readers,
// folds and deletions run at the same time in many processes.
// functions/docs/design/protocol.md defines the words and draws the three
// interleavings that matter. rules.md beside it names for each rule the test that
// shows the need for it.
//
// The data lives in the tables events, users and histories of package store. The
// only lock is the atomicity of one user row. It holds the ticket counter, the
// manifest, the tombstone, the profile and the session.
//
// # Rules
//
//  1. A writer writes the log first. The log is the truth. A block is a cache of a
//     closed range of the log, and a reader takes each range from one of the two.
//  2. Then one atomic step on the user row draws a ticket and reads the manifest
//     and the tombstone of that instant. Then the writer reads blocks and log, and
//     writes the profile at that ticket. Readers take the profile with the highest
//     ticket, so a slow writer never hides an event.
//  3. An event in a range that a block covers is late. The writer uncovers the
//     range, then draws another ticket: no reader sees the event before that.
//  4. A fold draws a ticket, reads a range, and writes blocks that nobody
//     rewrites. It names them in the manifest only if nobody drew a ticket since,
//     or if its announcement of the range is still there. A fold deletes nothing.
//     Every other change of a manifest draws a ticket first.
//  5. A reader that computes a profile reads the user row first. It stores the
//     profile at the ticket of that row, never above a refresh that began later.
//  6. A deletion advances the tombstone, draws a ticket, and leaves a marker at
//     that ticket. An empty profile would hide newer events.
//     It covers what was received until then, too. In the band after the tombstone,
//     where receipts decide, readers take the log. A tombstone that a right clock
//     cannot have set is replaced by the next writer (settle.go).
//  7. A session comes from the reading of its profile, and one mutation writes
//     both. Readers take it only beside that very profile.
//  8. A refresh may add its events to a profile of the ticket before. A list of the
//     newest events that the profile counts says which are new.
//  9. A writer of an app with segments lists its users as changed before it
//     acknowledges. An entry is at most 5 s older than the answer of its write.
//  10. While an app moves between regions, a ticket counts only in the region that owns
//     the user. functions/docs/design/regions.md has the rules.
//  11. A call of an SDK has the time of its first delivery, which calls.go finds before
//     the log is written.
//  12. A process may repeat every step at any time: after a crash, after a lost
//     answer, for a duplicate. It skips no step because the step seems done.
//
// # Parts
//
// Engine exports the operations. Each of its parts is one type. An arrow means
// "uses":
//
//	writer   (refresh.go)   -> logs, tickets, flights, adder, computer, folder,
//	                            changeList (changes.go), tails (tail.go)
//	reader   (read.go, readeach.go, strong.go, asof.go) -> logs, tickets, computer
//	bulk     (bulk.go)      -> logs, tickets, computer, folder, orphans
//	deletion (deletion.go)  -> logs, orphans, changeList
//	computer (compute.go)   -> logs
//	adder    (addition.go)
//	folder   (fold.go)      -> logs, tickets
//	sweeper  (sweep.go)     -> logs
//	logs     (logs.go)      -> appends (appends.go)
//	sampler  (sample.go)    -> logs
//
// Engine hands an operation on users to home or, while the app moves, to enRoute (ways.go),
// whose parts are owners.go, moving.go, moving_read.go and moving_delete.go. moveuser.go has
// the steps of the mover, and owned.go finds the tokens of a person in both regions.
//
// tickets, flights, orphans and changeList use no other part. The computer finds sessions
// in sessions.go.
package profile
