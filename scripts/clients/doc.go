// Package clients tests the engine with published clients, unmodified:
// search-insights and algoliasearch in Node (clients.mjs), Segment's SDK for Node
// (segment.mjs), and Algolia's Go client. both.mjs sends events to Algolia and to the
// engine, and bothtest.mjs runs it. segmentpage.mjs and rudderpage.mjs set up the SDKs of
// Segment and RudderStack for browsers, and pagetest.mjs runs them in a page; signintest.mjs signs a
// visitor in with each client of pages. The programs secured.* make secured keys. The package holds
// nothing but these and keeps nothing.
package clients
