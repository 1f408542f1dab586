// Package store keeps Affinity's data in Bigtable. It owns the table names, row keys
// and cell formats, and makes every read and write. No other package knows a key,
// a column or a gRPC code of Bigtable.
//
// A Store has a view for each table, or for some that belong together: s.Users reads the rows of
// users, s.Catalog objects and their lists by date. views.go lists them. A view is a value
// without a state of its own, so callers pass the one that they need.
//
// There are seventeen tables. Every key begins with the app id and a comma:
//
//	events   app,user,2019-05-28T00:04:34.000Z,<id>   the log, the truth: one row an event
//	           e:<type>,<name>,<facet>   the event's filters of one facet (see shared/score/schema)
//	           m:event                   the event as it was sent, with receipt time and index
//	events_narrow                                      the same log in the other schema; an app has one, or both
//	           view:<name>, click:<name>, conversion:<name>   all of the event's filters
//	           m:event                   as above
//	users    app,user,                                 one row a user
//	           u:c ticket counter, u:m manifest, u:d tombstone, u:v strategy version of the newest profile
//	           p:p profiles, p:s each without its affinities; cell time = ticket x 1000 microseconds
//	         ,message,<id>                             u:a deliveries of a message that have begun and not ended
//	histories
//	         app,user,<ticket %016x>,<n %04x>          packed ranges of the log; the manifest names the valid ones
//	           b:b a block, never rewritten, cell time = its latest event
//	dictionaries
//	         app,<MaxInt64 - generation %016x>         terms that many users share, the newest generation first
//	           d:d a dictionary, never rewritten
//	objects  app,index,objectID                        the catalog
//	           o:record the object as sent, o:filters its filters and the settings version they were made under,
//	           o:at the instants that its dated attributes hold
//	dated    app,index,attribute,<MaxInt64 - ms %016x>,objectID   the objects of an index by date
//	           o:f the object's filters and their settings version, cell time = when they were written
//	refused  app,<n>                                   refused events of an app, spread over four rows
//	         app,links,<n>                             events of an app that linked nobody, spread over four rows
//	           c:<day>,<reason> and c:#,<reason> counters, r:<slot>,<reason> a ring for each reason
//	crowd    app,                                      n:i time of the app's last import
//	         app,index,                                n:n names of the index's generations of crowd statistics
//	         app,index,<generation>,c|f,<n>            g:g decayed counts of objects, document frequencies
//	         app,index,<generation>,o,objectID         g:g an object's pairs
//	         app,index,<generation>,l,<facet>,<value>  g:g the most counted objects of a filter
//	         app,index,<generation>,h|r,...            g:... what a job has counted until it has merged it
//	segments app,manifest                             m:m the parts that queries read (see shared/rank/segment)
//	         app,f,<generation>,<user>                 d:d a part of a generation that is being built, by its first user
//	         app,p,<part %016x>,i|t|u|n|h|o,...        d:... what describes a part, p:... lists of a part of few users
//	         app,v,<facet>,<value>,<part %016x>        p:... the users of a part who have a filter, by score
//	         app,s,<segment>                           s:<day> the size of a saved segment
//	         app,x,<job>,<n %08x>                      x:x a piece of an exported file
//	usage    app,2026-11-22,<shard %02d>               c:<name> counters of the day, b:<process> number of its batches in them,
//	           h:<process> users with the most events, n:e,<type>,<name> and n:f,<facet> events by what they contain,
//	           n:left those counted under no name (see shared/app/usage)
//	         app,dead,<message>                        n:dead empty: the message waits as a dead letter
//	         app,keys                                  k:<hash> last day on which a key was used, cell time = that day
//	rates    app,                                      s:<process> what a process said of the app's limits (see shared/app/limit)
//	audit_log
//	         app,<16 digits that fall with time>-<random>   a change (see shared/app/auditlog)
//	           e:begun the change before it was made, e:ended how it ended
//	         app,salt                                  s:salt the app's secret for hashes of users
//	changes  app,<salt %x>,<slot %08x>,user            c: one empty cell, its time is the slot's: the profile of the user
//	           may have changed in the slot of ten seconds (see changes.go)
//	jobs     app,collection,job,<shard %07d>           what a job or a shard says of users; Firestore has the rest (see shared/job)
//	           o:<version> while it may change, e:<version> after its end; the document names the version
//	locations
//	         app,<keyed hash of the user, %x>          l:r the region in which the user lives, and since when
//	recent   app,<99999999 - minute>                   a sample of the events of the last minutes (see shared/intake/recent)
//	           e:<9999999999999 - receipt in ms>,user,<id> an event in short, cell time = when it was written
//
// A user token never contains a comma, so the keys of one user are exactly those
// that begin with "app,user,". The comma is part of the prefix because '+' sorts
// before it.
//
// terraform/bigtable.json declares the tables, their families and the garbage
// collection of each family, and says of each whose it is, whether it is personal, in
// which formats and of what it is made: functions/docs/reference/tables.md shows it. Terraform reads the same
// file. Bigtable drops events, refused and recent events, usage, changes, details of jobs and
// what segments hold by age, and of everything else only superseded cells.
package store
