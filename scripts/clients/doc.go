// Package clients tests the engine with published clients, unmodified:
// search-insights and algoliasearch in Node (clients.mjs), Segment's SDK for Node
// (segment.mjs), and Algolia's Go client. It
// holds tests only and keeps nothing.
package clients
