package ports_test

import (
	"net"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/ports"
)

func TestFree(t *testing.T) {
	taken := map[string]bool{}
	for range 50 {
		address, err := ports.Free()
		must.Succeed(t, err)
		if taken[address] {
			t.Errorf("%s is free, though a server listens there", address)
		}
		l, err := net.Listen("tcp", address)
		must.Succeed(t, err)
		defer l.Close()
		taken[address] = true
	}
}
