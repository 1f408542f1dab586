package main

import (
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

func TestUserList(t *testing.T) {
	t.Parallel()
	s := startNarrow(t, 0)
	affinity(t, "", "user", "list", "--url", s.URL).wants(t, cli.ExitOK, "USER", "LAST EVENT", "u0 ", "u6 ")
	two := affinity(t, "", "user", "list", "--limit", "2", "--url", s.URL)
	two.wants(t, cli.ExitOK, "u0 ", "u1 ", "more follow: --cursor u1")
	if strings.Contains(two.out, "u2") {
		t.Errorf("more than two users:\n%s", two.out)
	}
	affinity(t, "", "user", "list", "--limit", "2", "--cursor", "u4", "-o", "csv", "--url", s.URL).wants(t, cli.ExitOK, "userToken,lastEventAt,total\nu5,", "\nu6,")
	affinity(t, "", "user", "list", "--prefix", "u3", "--json", "--url", s.URL).wants(t, cli.ExitOK, `"userToken": "u3"`)
	affinity(t, "", "user", "list", "--prefix", "nobody", "--json", "--url", s.URL).wants(t, cli.ExitOK, `"users": []`)
	affinity(t, "", "user", "list", "--limit", "0", "--url", s.URL).wants(t, cli.ExitUsage, "--limit must be at least 1")
	affinity(t, "", "user", "list", "--prefix", "a,b", "--url", s.URL).wants(t, cli.ExitFailed, "prefix must be the beginning of a user token")
}
