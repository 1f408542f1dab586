package store

// The types below are what a Store can do with one table, or with some that belong together.
// Each is a view of the same Store: it has no state of its own.
type (
	// Users are the rows of users: tickets, exclusions, profiles, what is on its way.
	Users struct{ *db }
	// Events are the logs of users.
	Events struct{ *db }
	// Histories are the packed ranges of logs.
	Histories struct{ *db }
	// Dictionaries are the terms that many users of an app share.
	Dictionaries struct{ *db }
	// Calls remembers the times of calls of SDKs.
	Calls struct{ *db }
	// Changes lists the users whose profiles may have changed.
	Changes struct{ *db }
	// Catalog are the objects of apps, and their lists by date.
	Catalog struct{ *db }
	// Crowd are the statistics of objects.
	Crowd struct{ *db }
	// Segments are the lists of users by filter and score.
	Segments struct{ *db }
	// RefusedTable is the table of refused events.
	RefusedTable struct{ *db }
	// Recent is a sample of the events of the last minutes.
	Recent struct{ *db }
	// Usage counts what apps use, and lists dead letters.
	Usage struct{ *db }
	// Rates is what processes tell each other about limits.
	Rates struct{ *db }
	// Jobs are the details of jobs that name users.
	Jobs struct{ *db }
	// AuditLog are the changes that people have made.
	AuditLog struct{ *db }
	// Locations say in which region a person lives.
	Locations struct{ *db }
	// Rows are all rows of an app, whatever their table: for a deletion or a move.
	Rows struct{ *db }
)

// db is a Store to its views.
type db = Store

// view sets the views of a new Store.
func (s *Store) view() *Store {
	s.Users, s.Events, s.Histories, s.Dictionaries, s.Calls, s.Changes = Users{s}, Events{s}, Histories{s},
		Dictionaries{s}, Calls{s}, Changes{s}
	s.Catalog, s.Crowd, s.Segments, s.Refused, s.Recent = Catalog{s}, Crowd{s}, Segments{s}, RefusedTable{s}, Recent{s}
	s.Usage, s.Rates, s.Jobs, s.AuditLog, s.Rows = Usage{s}, Rates{s}, Jobs{s}, AuditLog{s}, Rows{s}
	s.Locations = Locations{s}
	return s
}
