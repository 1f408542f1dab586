package config

import "time"

var NewCachedAt = newCached

const (
	CachedKeys   = cachedKeys
	MaxStrangers = maxStrangers
)

// AgeVersions makes the versions of an app older by d.
func AgeVersions(s Store, appID string, d time.Duration) {
	a := s.(*memory).apps[appID]
	for i := range a.strategies {
		a.strategies[i].SetAt = a.strategies[i].SetAt.Add(-d)
	}
}
