package ports_test

import (
	"net"
	"testing"

	"github.com/affinityengine/affinity/shared/local/ports"
)

func TestFree(t *testing.T) {
	taken := map[string]bool{}
	for range 50 {
		address, err := ports.Free()
		if err != nil {
			t.Fatal(err)
		}
		if taken[address] {
			t.Errorf("%s is free, though a server listens there", address)
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		taken[address] = true
	}
}
