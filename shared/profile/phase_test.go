package profile

import (
	"fmt"
	"testing"
)

// Users who receive the same number of events together fold at different times, each as
// often as without the others. None is computed later than permitted.
func TestUsersFoldApart(t *testing.T) {
	const users, events = 256, 5 * 256
	folds, most := map[int]int{}, 0
	for u := range users {
		token, own := fmt.Sprint("u", u), 0
		for n := range events {
			if defaultLimits.foldsBetween(token, n, n+1) {
				own++
				folds[n]++
				most = max(most, folds[n])
			}
		}
		if own != events/defaultLimits.foldEvents {
			t.Errorf("%s folds %d times", token, own)
		}
		if n := defaultLimits.additions(token).Additions; n > defaultLimits.maxAdditions || n <= defaultLimits.maxAdditions*7/8 {
			t.Errorf("%s is computed after %d additions", token, n)
		}
	}
	if most > users/20 {
		t.Errorf("%d users fold after the same event", most)
	}
}
