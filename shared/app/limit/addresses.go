package limit

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/affinityengine/affinity/shared/cache"
)

// maxAddresses is how many addresses an Addresses keeps. Beyond it one that
// is seen seldom, or was not seen for long, starts again with a full bucket.
const maxAddresses = 20_000

// Addresses limits what each address sends, by a token bucket for each name and
// address. The buckets are those of this process: a client whose requests reach
// several instances has one in each. It is safe for concurrent use.
type Addresses struct {
	mu      sync.Mutex
	buckets cache.Map[bucketID, *rate.Limiter]
}

type bucketID struct {
	name    string
	address netip.Addr
}

// NewAddresses returns full buckets.
func NewAddresses() *Addresses {
	return &Addresses{buckets: cache.New[bucketID, *rate.Limiter](maxAddresses)}
}

// Allow takes a token from the bucket of an address, and reports whether there
// was one. The bucket gets perMinute tokens a minute, and holds those of ten
// seconds, at least one. A name stands for one rate; a new rate replaces it.
func (a *Addresses) Allow(name string, address netip.Addr, perMinute int, now time.Time) bool {
	id := bucketID{name, network(address)}
	every, burst := rate.Limit(float64(perMinute)/60), max(1, perMinute/6)
	a.mu.Lock()
	defer a.mu.Unlock()
	bucket, ok := a.buckets.Get(id)
	if !ok || bucket.Limit() != every {
		bucket = rate.NewLimiter(every, burst)
		a.buckets.Set(id, bucket)
	}
	return bucket.AllowN(now, 1)
}

// Empty reports whether the bucket of an address holds no token. It takes none.
func (a *Addresses) Empty(name string, address netip.Addr, now time.Time) bool {
	bucket, ok := a.buckets.Peek(bucketID{name, network(address)})
	return ok && bucket.TokensAt(now) < 1
}

// network returns what one client has: an IPv4 address, or the /64 of an IPv6
// address, of which a client may use every address.
func network(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	if address.Is4() || !address.IsValid() {
		return address
	}
	prefix, _ := address.Prefix(64) // fits every IPv6 address
	return prefix.Addr()
}
