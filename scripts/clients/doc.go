// Package clients tests the engine with published clients, unmodified:
// search-insights and algoliasearch in Node (clients.mjs), and the Go client. It
// holds tests only and keeps nothing.
package clients
