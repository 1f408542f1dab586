package config

// What the tests of the cache need to see of it.
var (
	NewCachedAt = newCached
	DocumentID  = documentID
)

const CachedKeys = cachedKeys
