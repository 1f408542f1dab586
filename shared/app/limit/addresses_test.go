package limit_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/limit"
)

func TestAddresses(t *testing.T) {
	a, now := limit.NewAddresses(), time.Unix(1_000_000, 0)
	accepted := func(name, address string, rate, n int) (accepted int) {
		for range n {
			if a.Allow(name, netip.MustParseAddr(address), rate, now) {
				accepted++
			}
		}
		return accepted
	}
	check := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d accepted, want %d", what, got, want)
		}
	}
	check("burst of ten seconds", accepted("web", "192.0.2.1", 60, 50), 10)
	check("another address", accepted("web", "192.0.2.2", 60, 1), 1)
	check("another name", accepted("app", "192.0.2.1", 60, 1), 1)
	check("the same address as IPv6", accepted("web", "::ffff:192.0.2.1", 60, 1), 0)
	check("one IPv6 network", accepted("web", "2001:db8::1", 60, 50)+accepted("web", "2001:db8::2", 60, 50), 10)
	check("another IPv6 network", accepted("web", "2001:db8:0:1::1", 60, 1), 1)
	check("less than one in ten seconds", accepted("slow", "192.0.2.1", 1, 5), 1)
	if empty := a.Empty("web", netip.MustParseAddr("192.0.2.1"), now); !empty || a.Empty("web", netip.MustParseAddr("192.0.2.3"), now) {
		t.Errorf("the bucket is empty: %t, and so is one that nobody used", empty)
	}
	now = now.Add(3 * time.Second)
	check("three seconds later", accepted("web", "192.0.2.1", 60, 50), 3)
	check("under a higher rate", accepted("web", "192.0.2.1", 600, 500), 100)
}

func TestAddressesAreBounded(t *testing.T) {
	a, now := limit.NewAddresses(), time.Unix(1_000_000, 0)
	first := netip.MustParseAddr("192.0.2.1")
	if !a.Allow("web", first, 1, now) || a.Allow("web", first, 1, now) {
		t.Fatal("want one request")
	}
	for i := range limit.MaxAddresses {
		a.Allow("web", netip.MustParseAddr(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)), 1, now)
	}
	if !a.Allow("web", first, 1, now) {
		t.Error("the oldest bucket is still there")
	}
}
