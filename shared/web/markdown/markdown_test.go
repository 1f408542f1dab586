package markdown_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/web/markdown"
)

func TestParse(t *testing.T) {
	page, err := markdown.Parse([]byte(`# Ten *laws*

Read [on](other.md#x), or see ![a picture](p.png).

## A & B

| a | b |
|---|---|
| `+"`x < y`"+` | 2 |

<!-- a mark of a test -->
### A & B

`+"```sh\necho \"<hi>\"\n```\n\n<b>bold</b> is text\n"), func(target string) string { return "/docs/" + target })
	if err != nil {
		t.Fatal(err)
	}
	if page.Title != "Ten laws" {
		t.Errorf("the title is %q", page.Title)
	}
	want := []markdown.Section{
		{Text: "Read on, or see a picture.\n"},
		{ID: "a--b", Title: "A & B", Text: "a b  x < y 2\n\n"},
		{ID: "a--b-1", Title: "A & B", Text: "echo \"<hi>\"\nbold is text\n"},
	}
	if diff := cmp.Diff(want, page.Sections); diff != "" {
		t.Errorf("sections (-want +got):\n%s", diff)
	}
	for _, part := range []string{
		`<a href="/docs/other.md#x">on</a>`, `<a href="/docs/p.png">a picture</a>`, `<h2 id="a--b">A &amp; B</h2>`,
		`tabindex="0"><table>`, "<td><code>x &lt; y</code></td>", `<pre tabindex="0"><code>echo &#34;&lt;hi&gt;&#34;`,
		"&lt;b&gt;bold&lt;/b&gt; is text",
	} {
		if !strings.Contains(string(page.HTML), part) {
			t.Errorf("the page lacks %s:\n%s", part, page.HTML)
		}
	}
	if strings.Contains(string(page.HTML), "mark of a test") || strings.Contains(string(page.HTML), "<h1") {
		t.Errorf("the page shows a comment or its title:\n%s", page.HTML)
	}
}

func TestInline(t *testing.T) {
	for source, want := range map[string]string{
		"`a` and *b* and **c**":     "<code>a</code> and <em>b</em> and <strong>c</strong>",
		"[a route](/docs/rank#x)":   `<a href="/docs/rank#x">a route</a>`,
		"1 < 2, <userToken> & more": "1 &lt; 2, &lt;userToken&gt; &amp; more",
	} {
		if got := string(markdown.Inline(source)); got != want {
			t.Errorf("%q is %s, want %s", source, got, want)
		}
	}
}
