// Package engines runs boosts in search engines and compares the order of
// documents with the formula of shared/rank/boost: Lucene, in which Elasticsearch,
// OpenSearch and Solr compute scores (Lucene.java), PostgreSQL, and MiniSearch
// (minisearch.mjs). It also runs the programs on the pages of
// functions/docs/guides/engines. It holds tests only and keeps nothing.
package engines
