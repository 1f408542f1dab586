// Package engines runs boosts in search engines and compares the order of
// documents with the formula of shared/boost: Lucene, in which Elasticsearch,
// OpenSearch and Solr compute scores (Lucene.java). It holds tests only and keeps
// nothing.
package engines
