// Package limit holds what one app may ask of the engine: events, imported events
// and reads per second, jobs and strategies per hour, events of one user per day,
// and some requests at a time.
//
// Each process counts for itself in memory, so that a check costs no request. The
// processes of a deployment share a limit: each writes what its clients asked of
// an app to a table of rates, at most once a second and only for apps that use
// more than a hundredth of a limit, and reads what the others wrote there (see
// exchange.go). While the table cannot be reached, each process permits the whole
// limit.
//
// An address is counted in each process, see Addresses.
//
// The numbers of an app are part of its configuration, see Numbers. Everything
// else is kept in memory; the table may be emptied at any time.
package limit
