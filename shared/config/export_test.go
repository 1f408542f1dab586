package config

var NewCachedAt = newCached

const CachedKeys = cachedKeys
