package render

import (
	"slices"
	"testing"
)

func TestFragment(t *testing.T) {
	for _, test := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 20, []string{""}},
		{"sort_by=x", 20, []string{"sort_by=x"}},
		{"[{a},{b},{c}],end", 40, []string{"[{a},{b},{c}],end"}},
		{"[{aaaa},{bbbb},{cccc}],end", 8, []string{"[{aaaa},", "{bbbb},", "{cccc}", "],end"}},
		{"e([(a),(b),(c),(d),(e),(f)])", 4, []string{"e([", "(a),", "(b),", "... 3 more ...", "(f)])"}},
	} {
		if got := Fragment(test.text, test.width, 5); !slices.Equal(got, test.want) {
			t.Errorf("%s in %d columns: %q, want %q", test.text, test.width, got, test.want)
		}
	}
}
