package openapi

import (
	"html"
	"html/template"
	"regexp"
	"strings"
)

// markdown renders the part of Markdown that descriptions use: paragraphs,
// headings, lists, code blocks, and what inline renders. All else is text.
func markdown(text string) template.HTML {
	var b strings.Builder
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for len(lines) > 0 {
		n := blockLength(lines)
		block := lines[:n]
		lines = lines[n:]
		switch {
		case strings.TrimSpace(block[0]) == "":
		case strings.HasPrefix(block[0], "```"):
			b.WriteString("<pre><code>" + html.EscapeString(strings.Join(block[1:n-1], "\n")) + "</code></pre>\n")
		case strings.HasPrefix(block[0], "#"):
			title := strings.TrimLeft(block[0], "# ")
			id := strings.Trim(notInID.ReplaceAllString(strings.ToLower(title), "-"), "-")
			b.WriteString(`<h2 id="` + id + `">` + string(inline(title)) + "</h2>\n")
		case listItem.MatchString(block[0]):
			list(&b, block)
		default:
			b.WriteString("<p>" + string(inline(strings.Join(block, " "))) + "</p>\n")
		}
	}
	return template.HTML(b.String())
}

// notInID is what the id of a heading does not have.
var notInID = regexp.MustCompile(`[^a-z0-9]+`)

var listItem = regexp.MustCompile(`^(-|\d+\.) `)

// blockLength is how many lines the first block has.
func blockLength(lines []string) int {
	first := lines[0]
	if strings.TrimSpace(first) == "" || strings.HasPrefix(first, "#") {
		return 1
	}
	code := strings.HasPrefix(first, "```")
	for i := 1; i < len(lines); i++ {
		if code && strings.HasPrefix(lines[i], "```") {
			return i + 1
		}
		if !code && (strings.TrimSpace(lines[i]) == "" || strings.HasPrefix(lines[i], "```")) {
			return i
		}
	}
	return len(lines)
}

func list(b *strings.Builder, lines []string) {
	kind := "ul"
	if lines[0][0] != '-' {
		kind = "ol"
	}
	var items []string
	for _, line := range lines {
		if listItem.MatchString(line) {
			items = append(items, listItem.ReplaceAllString(line, ""))
		} else {
			items[len(items)-1] += " " + strings.TrimSpace(line)
		}
	}
	b.WriteString("<" + kind + ">\n")
	for _, item := range items {
		b.WriteString("<li>" + string(inline(item)) + "</li>\n")
	}
	b.WriteString("</" + kind + ">\n")
}

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	boldSpan = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	italSpan = regexp.MustCompile(`\*([^*\s](?:[^*]*[^*\s])?)\*`)
	linkSpan = regexp.MustCompile(`\[([^\]]+)\]\(([/#][^)\s]*)\)`)
)

// inline renders code, bold and emphasized text, and links within the site.
func inline(text string) template.HTML {
	var b strings.Builder
	for text != "" {
		at := codeSpan.FindStringSubmatchIndex(text)
		if at == nil {
			b.WriteString(spans(text))
			break
		}
		b.WriteString(spans(text[:at[0]]) + string(code(text[at[2]:at[3]])))
		text = text[at[1]:]
	}
	return template.HTML(b.String())
}

func spans(text string) string {
	text = html.EscapeString(text)
	text = boldSpan.ReplaceAllString(text, "<strong>$1</strong>")
	text = italSpan.ReplaceAllString(text, "<em>$1</em>")
	return linkSpan.ReplaceAllString(text, `<a href="$2">$1</a>`)
}

func code(text string) template.HTML {
	return template.HTML("<code>" + html.EscapeString(text) + "</code>")
}
