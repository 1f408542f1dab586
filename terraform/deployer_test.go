package terraform_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	typeOfResource = regexp.MustCompile(`(?m)^(?:resource|data) "(google_\w+)"`)
	deployerRow    = regexp.MustCompile("(?m)^\\| (`roles/[^|]+)\\| ([^|]+)\\|$")
	roleName       = regexp.MustCompile("`roles/([\\w.]+)`")
	typePattern    = regexp.MustCompile("`(google_\\w+)(\\*?)`")
	grantedInLoop  = regexp.MustCompile(`(?s)for role in (.*?); do`)
	grantable      = regexp.MustCompile(`'roles/[\w.]+'`)
)

// TestRolesOfTheDeployer compares the roles of functions/docs/operate/deployer.md with the resources of the
// configuration, and with the commands that grant the roles.
func TestRolesOfTheDeployer(t *testing.T) {
	text, err := os.ReadFile("../functions/docs/operate/deployer.md")
	if err != nil {
		t.Fatal(err)
	}
	types, granted := map[string]bool{}, map[string]bool{}
	for _, file := range configuration(t) {
		for _, m := range typeOfResource.FindAllStringSubmatch(file, -1) {
			types[m[1]] = false
		}
		for _, grant := range projectGrant.FindAllStringSubmatch(file, -1) {
			for _, role := range roleInGrant.FindAllStringSubmatch(grant[3], -1) {
				granted["'"+role[1]+"'"] = true
			}
		}
	}
	var roles []string
	for _, row := range deployerRow.FindAllStringSubmatch(string(text), -1) {
		for _, role := range roleName.FindAllStringSubmatch(row[1], -1) {
			if !strings.Contains(row[1], "with a condition") && !strings.Contains(row[1], "on the billing account") {
				roles = append(roles, role[1])
			}
		}
		for _, p := range typePattern.FindAllStringSubmatch(row[2], -1) {
			used := false
			for name := range types {
				if name == p[1] || p[2] != "" && strings.HasPrefix(name, p[1]) {
					types[name], used = true, true
				}
			}
			if !used {
				t.Errorf("operate/deployer.md has roles for %s%s, of which the configuration has none", p[1], p[2])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		if !types[name] {
			t.Errorf("no role of operate/deployer.md is for %s", name)
		}
	}
	loop := grantedInLoop.FindStringSubmatch(string(text))
	if loop == nil {
		t.Fatal("operate/deployer.md has no loop that grants the roles")
	}
	in := strings.Fields(strings.ReplaceAll(loop[1], "\\\n", " "))
	slices.Sort(in)
	if slices.Sort(roles); !slices.Equal(in, roles) {
		t.Errorf("the loop grants %q, and the table has %q", in, roles)
	}
	may := grantable.FindAllString(string(text), -1)
	if want := slices.Sorted(maps.Keys(granted)); !slices.Equal(may, want) {
		t.Errorf("a deployer may grant %q on the project, and the configuration grants %q", may, want)
	}
}
