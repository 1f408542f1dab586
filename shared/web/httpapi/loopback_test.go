package httpapi_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/web/httpapi"
)

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:8080": true, "LOCALHOST:1": true, "localhost.:80": true, "127.0.0.1": true, "127.0.0.1:8080": true,
		"127.1.2.3:1": true, "[::1]": true, "[::1]:8080": true,
		"": false, ":8080": false, "evil.example": false, "evil.example:8080": false, "localhost.evil.example": false, "evil.localhost": false,
		"127.0.0.1.evil.example": false, "0.0.0.0:8080": false, "[::]:8080": false, "192.168.0.1:8080": false, "127.1": false, "localhost:80:80": false,
		"user@localhost": false, "[::1%25lo]:1": false,
	} {
		if got := httpapi.Loopback(host); got != want {
			t.Errorf("Loopback(%q) = %t, want %t", host, got, want)
		}
	}
}
