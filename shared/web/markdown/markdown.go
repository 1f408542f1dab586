// Package markdown turns Markdown of this project into HTML for its pages: whole pages,
// with their sections for a search, and the descriptions of the API. HTML within Markdown
// is shown as text, and an image as a link to it, because the pages load nothing.
package markdown

import (
	"bytes"
	"fmt"
	"html/template"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	table "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

var engine = goldmark.New(goldmark.WithExtensions(extension.Table),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(own{}, 1))))

// Page is a page of Markdown as HTML, without its title.
type Page struct {
	Title    string
	HTML     template.HTML
	Sections []Section // the first one is what stands before the first heading
}

// Section is the text from one heading to the next.
type Section struct {
	ID, Title string // of the heading; both are "" of the first one
	Text      string
}

// Parse renders a page. link returns where a link of the page leads.
func Parse(source []byte, link func(target string) string) (Page, error) {
	page, at := Page{Sections: []Section{{}}}, 0
	seen := map[string]int{}
	doc := engine.Parser().Parse(text.NewReader(source))
	follow(doc, link)
	for block := doc.FirstChild(); block != nil; {
		next := block.NextSibling()
		words := plain(block, source)
		switch heading, ok := block.(*ast.Heading); {
		case ok && heading.Level == 1:
			page.Title = words
			doc.RemoveChild(doc, heading)
		case ok:
			id := slug(words)
			if seen[id]++; seen[id] > 1 {
				id = fmt.Sprintf("%s-%d", id, seen[id]-1)
			}
			heading.SetAttributeString("id", []byte(id))
			page.Sections = append(page.Sections, Section{ID: id, Title: words})
			at++
		default:
			page.Sections[at].Text += words + "\n"
		}
		block = next
	}
	var out bytes.Buffer
	err := engine.Renderer().Render(&out, source, doc)
	page.HTML = template.HTML(out.String())
	return page, err
}

// follow replaces the targets of links, and images by links to them.
func follow(doc ast.Node, link func(string) string) {
	var images []*ast.Image
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // fails never
		switch n := n.(type) {
		case *ast.Link:
			if entering {
				n.Destination = []byte(link(string(n.Destination)))
			}
		case *ast.Image:
			if entering {
				images = append(images, n)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, image := range images {
		to := ast.NewLink()
		to.Destination = []byte(link(string(image.Destination)))
		for child := image.FirstChild(); child != nil; {
			next := child.NextSibling()
			to.AppendChild(to, child)
			child = next
		}
		image.Parent().ReplaceChild(image.Parent(), image, to)
	}
}

// plain returns the words of a node, those of blocks and cells with a space between them.
func plain(node ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // fails never
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
			}
		default:
			if !entering && n.Type() == ast.TypeBlock && n != node {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(b.String())
}

var notInSlug = regexp.MustCompile("[^a-z0-9 _-]")

// slug is the anchor of a heading, as GitHub makes it.
func slug(heading string) string {
	return strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// Blocks renders a text of paragraphs, headings, lists and code.
func Blocks(source string) template.HTML {
	page, err := Parse([]byte(source), func(target string) string { return target })
	if err != nil { // the writer is in memory
		return template.HTML("<pre>" + template.HTMLEscapeString(source) + "</pre>")
	}
	return page.HTML
}

// Inline renders one paragraph, without a paragraph around it.
func Inline(source string) template.HTML {
	html := strings.TrimSpace(string(Blocks(source)))
	return template.HTML(strings.TrimSuffix(strings.TrimPrefix(html, "<p>"), "</p>"))
}

// own renders what goldmark renders otherwise: what is wide can be scrolled, by keys too.
type own struct{}

// RegisterFuncs adds the renderers to those of goldmark.
func (own) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, codeBlock)
	r.Register(ast.KindCodeBlock, codeBlock)
	r.Register(table.KindTable, wideTable)
	r.Register(ast.KindHTMLBlock, shownHTML)
	r.Register(ast.KindRawHTML, shownHTML)
}

func codeBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		text := template.HTMLEscapeString(string(n.Lines().Value(source)))
		_, _ = w.WriteString(`<pre tabindex="0"><code>` + text + "</code></pre>\n")
	}
	return ast.WalkContinue, nil
}

func wideTable(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString(`<div class="wide" role="group" aria-label="Table" tabindex="0"><table>` + "\n")
	} else {
		_, _ = w.WriteString("</table></div>\n")
	}
	return ast.WalkContinue, nil
}

// shownHTML shows HTML as the text that it is, and leaves out comments.
func shownHTML(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	lines := n.Lines
	if raw, ok := n.(*ast.RawHTML); ok {
		lines = func() *text.Segments { return raw.Segments }
	}
	if shown := string(lines().Value(source)); !strings.HasPrefix(shown, "<!--") {
		_, _ = w.WriteString(template.HTMLEscapeString(shown))
	}
	return ast.WalkSkipChildren, nil
}
