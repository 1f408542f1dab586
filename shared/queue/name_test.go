package queue_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/queue"
)

var validName = regexp.MustCompile(`\A[0-9a-f]{32}(-[A-Za-z0-9_-]+)?\z`)

func TestTaskName(t *testing.T) {
	parts := rapid.SliceOf(rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-z0-9_-]{0,100}`)))
	rapid.Check(t, func(t *rapid.T) {
		a, b := parts.Draw(t, "a"), parts.Draw(t, "b")
		name := queue.TaskName(a...)
		if !validName.MatchString(name) || len(name) > 500 {
			t.Fatalf("%q is not a task name", name)
		}
		if again := queue.TaskName(slices.Clone(a)...); again != name {
			t.Fatalf("the same parts give %q, then %q", name, again)
		}
		if other := queue.TaskName(b...); (other == name) != slices.Equal(a, b) {
			t.Fatalf("%q and %q: names %q and %q", a, b, name, other)
		}
	})
}

func TestTaskNamesDiffer(t *testing.T) {
	for name, c := range map[string][2][]string{
		"where one part ends":            {{"ab", "c"}, {"a", "bc"}},
		"an empty part":                  {{"a"}, {"a", ""}},
		"the order":                      {{"a", "b"}, {"b", "a"}},
		"parts that only the hash holds": {{"a+b"}, {"a/b"}},
		"long parts":                     {{strings.Repeat("x", 600)}, {strings.Repeat("x", 601)}},
	} {
		t.Run(name, func(t *testing.T) {
			if a, b := queue.TaskName(c[0]...), queue.TaskName(c[1]...); a == b {
				t.Errorf("%q and %q are both %s", c[0], c[1], a)
			}
		})
	}
}

func ExampleTaskName() {
	fmt.Println(queue.TaskName("purge", "shop", "dXNlcg+/=="))
	// Output: 26c96093d488f015d18890b7cacc7ee8-purge-shop
}
