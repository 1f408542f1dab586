package clients

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/algolia/algoliasearch-client-go/v3/algolia/opt"
	"github.com/algolia/algoliasearch-client-go/v3/algolia/search"

	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/must"
)

// securedPrograms run the functions that the guide shows, by the language of its blocks. The
// arguments are the parent, the user and the end.
var securedPrograms = map[string][]string{
	"js": {"node", "--input-type=module", "-e", `import { securedKey } from './secured.mjs';
		console.log(securedKey(process.argv[1], process.argv[2], process.argv[3]))`},
	"python": {"python3", "-B", "-c", "import sys, secured; print(secured.secured_key(*sys.argv[1:]))"},
	"php":    {"php", "-r", `require 'secured.php'; echo secured_key($argv[1], $argv[2], (int) $argv[3]);`, "--"},
	"ruby":   {"ruby", "-r", "./secured.rb", "-e", "puts secured_key(*ARGV)"},
}

// Each function makes the key that the Go client makes, byte for byte, and Algolia's client one of
// the same parameters.
func TestSecuredKeys(t *testing.T) {
	const parent, user = "parent, with more", "a/b+c=_-"
	until := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	want := client.SecuredKey(parent, client.Secured{UserToken: user, ValidUntil: until})
	algolia, err := search.GenerateSecuredAPIKey(parent, opt.UserToken(user), opt.ValidUntil(until))
	must.Succeed(t, err)
	if algolia != want {
		t.Errorf("Algolia's client makes %s, want %s", algolia, want)
	}
	for language, program := range securedPrograms {
		t.Run(language, func(t *testing.T) {
			if testing.Short() {
				t.Skip("-short starts no interpreter")
			}
			if _, err := exec.LookPath(program[0]); err != nil {
				t.Skipf("%s is not installed, so its function for secured keys is not tested", program[0])
			}
			got, err := exec.CommandContext(t.Context(), program[0], append(program[1:], parent, user, "1798859045")...).Output()
			if err != nil || strings.TrimSpace(string(got)) != want {
				t.Errorf("%s, %v; want %s", got, err, want)
			}
		})
	}
}

// The guide shows the functions that the tests run.
func TestSecuredKeysAreShown(t *testing.T) {
	guide, err := os.ReadFile("../../functions/docs/guides/web-page.md")
	must.Succeed(t, err)
	for language, ending := range map[string]string{"js": "mjs", "python": "py", "php": "php", "ruby": "rb"} {
		program, err := os.ReadFile("secured." + ending)
		must.Succeed(t, err)
		if block := "```" + language + "\n" + string(program) + "```"; !strings.Contains(string(guide), block) {
			t.Errorf("the guide does not show secured.%s as it is", ending)
		}
	}
}
