package console_test

import (
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

// BenchmarkUserPages measures pages about users on the data of the demo, with a request over
// HTTP each. The 99th percentile is what a person waits.
func BenchmarkUserPages(b *testing.B) {
	u := newUsersSite(b)
	u.fill(150)
	users, err := u.engine.Profiles().Users(b.Context(), api.UsersQuery{Limit: 500})
	u.must(err)
	for _, page := range []struct{ name, before, after string }{
		{"user", "/console/users/", ""}, {"why", "/console/users/", "/why?facet=color&value=Green"}, {"events", "/console/users/", "/events"},
	} {
		b.Run(page.name, func(b *testing.B) {
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				begin := time.Now()
				u.get(200, page.before+users.Users[i%len(users.Users)].UserToken+page.after)
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}
