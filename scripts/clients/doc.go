// Package clients holds the engine to the clients that people already use, as
// they are published: search-insights and algoliasearch in Node (clients.mjs),
// and the Go client. All of it is tests; it keeps nothing.
package clients
