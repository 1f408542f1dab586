package docs

import (
	"bytes"
	"cmp"
	"html/template"
	"math"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/web/httpapi"
)

const (
	maxQuery  = 200 // letters of a search
	maxFound  = 20  // pages that a search shows
	maxQuoted = 220 // letters that it quotes of each

	// BM25: how soon more of a word is worth no more, and how much long pages lose.
	saturation, length = 1.2, 0.6

	// A word in the title of a page, or of a section, is worth as many in its text.
	titleWeight, headingWeight = 12, 5

	// A section whose title is the question is worth so much of a page whose title it is.
	sectionLikeness = 0.6
)

// worth is how much the pages of a kind stand before others: a task before what is behind it, and
// lists of pages last.
var worth = map[string]float64{"guides": 1.2, "reference": 1.2, "operate": 1.1, "api": 0.8, "design": 0.7, "list": 0.5}

// index finds pages by BM25 over their titles, headings and texts.
type index struct {
	pages   []indexed
	average float64        // words of a page, weighted
	having  map[string]int // how many pages have a word
}

type indexed struct {
	page
	title []string
	words map[string]float64 // how often the page has each word, weighted
	size  float64
	parts []part // by section
}

type part struct {
	heading []string
	words   map[string]int
	size    int
}

func newIndex(pages []page) *index {
	x := &index{having: map[string]int{}}
	for _, p := range pages {
		i := indexed{page: p, title: wordsOf(p.title), words: map[string]float64{}}
		add := func(words []string, weight float64) {
			for _, word := range words {
				i.words[word] += weight
				i.size++
			}
		}
		add(i.title, titleWeight)
		for _, s := range p.sections {
			made, words := part{heading: wordsOf(s.Title), words: map[string]int{}}, wordsOf(s.Text)
			add(made.heading, headingWeight)
			add(words, 1)
			for _, word := range words {
				made.words[word]++
				made.size++
			}
			i.parts = append(i.parts, made)
		}
		for word := range i.words {
			x.having[word]++
		}
		x.pages, x.average = append(x.pages, i), x.average+i.size/float64(len(pages))
	}
	return x
}

// found is a page that a search has found, with its best section.
type found struct {
	Path, Title, Section, Kind string
	Text                       template.HTML
}

// search returns the best pages for a question, the best one first.
func (x *index) search(question string) (all []found) {
	asked := wordsOf(question)
	scores := map[string]float64{}
	var best []indexed
	for _, p := range x.pages {
		score, heading := 0.0, x.likeness(p.title, asked)
		for _, word := range asked {
			if n := p.words[word]; n > 0 {
				score += x.rarity(word) * n * (saturation + 1) / (n + saturation*(1-length+length*p.size/x.average))
			}
		}
		for _, s := range p.parts {
			heading = max(heading, x.likeness(s.heading, asked)*sectionLikeness)
		}
		kind := p.kind
		if p.path == "/docs" || p.path == "/docs/"+kind {
			kind = "list"
		}
		if score *= worth[kind] * (1 + heading); score > 0 {
			scores[p.path] = score
			best = append(best, p)
		}
	}
	slices.SortStableFunc(best, func(a, b indexed) int { return cmp.Compare(scores[b.path], scores[a.path]) })
	for _, p := range best[:min(len(best), maxFound)] {
		all = append(all, x.cite(p, asked))
	}
	return all
}

// cite names the best section of a page.
func (x *index) cite(p indexed, asked []string) found {
	f := found{Path: p.path, Title: p.page.title}
	for _, k := range kinds {
		if k.folder == p.kind {
			f.Kind = k.title
		}
	}
	best, at := -1.0, 0
	for i, s := range p.parts {
		score, heading := 0.0, s.heading
		if i == 0 {
			heading = p.title
		}
		for _, word := range asked {
			n := float64(s.words[word])
			if slices.Contains(heading, word) {
				n += headingWeight
			}
			score += x.rarity(word) * n / (n + saturation*(1+float64(s.size)/200))
		}
		if score > best {
			best, at = score, i
		}
	}
	if at < len(p.sections) {
		s := p.sections[at]
		if f.Section, f.Text = s.Title, quote(s.Text, asked); s.ID != "" {
			f.Path += "#" + s.ID
		}
	}
	return f
}

// likeness is how much of a title a question has, times how much of the question the title has.
func (x *index) likeness(title, asked []string) float64 {
	share := func(of, in []string) float64 {
		all, both := 0.0, 0.0
		for _, word := range of {
			all += x.rarity(word)
			if slices.Contains(in, word) {
				both += x.rarity(word)
			}
		}
		if all == 0 {
			return 0
		}
		return both / all
	}
	return share(title, asked) * share(asked, title)
}

// rarity is what a word is worth: a word of few pages says more.
func (x *index) rarity(word string) float64 {
	n := float64(x.having[word])
	return math.Log(1 + (float64(len(x.pages))-n+0.5)/(n+0.5))
}

// common words say nothing about what a question asks for.
var common = map[string]bool{}

func init() {
	for word := range strings.FieldsSeq("a an and are as at be by can do does for from has have how i if in into is it its " +
		"me my of on one or our so that the their then there they this to was we what when where which who why will with " +
		"you your") {
		common[word] = true
	}
}

// wordsOf returns the stems of the words of a text that say something.
func wordsOf(text string) (words []string) {
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if !common[word] {
			words = append(words, stem(word))
		}
	}
	return words
}

// stem cuts the endings by which forms of a word differ.
func stem(word string) string {
	for _, ending := range []string{"ations", "ation", "ions", "ion", "ings", "ing", "ies", "ed", "es", "s", "e", "y"} {
		if cut, ok := strings.CutSuffix(word, ending); ok && len(cut) > 3 {
			return cut
		}
	}
	return word
}

// quote returns the part of a text with the most words of a question, and marks these.
func quote(text string, asked []string) template.HTML {
	text = strings.Join(strings.Fields(text), " ")
	words := strings.SplitAfter(text, " ")
	best, at := -1, 0
	const window = maxQuoted / 6
	for i := 0; i < len(words); i += window / 2 {
		n := 0
		for _, word := range words[i:min(len(words), i+window)] {
			if isAsked(word, asked) {
				n++
			}
		}
		if n > best {
			best, at = n, i
		}
	}
	var b strings.Builder
	if at > 0 {
		b.WriteString("… ")
	}
	for i, word := range words[at:] {
		if i == window {
			b.WriteString("…")
			break
		}
		if isAsked(word, asked) {
			b.WriteString("<mark>" + template.HTMLEscapeString(strings.TrimSpace(word)) + "</mark> ")
		} else {
			b.WriteString(template.HTMLEscapeString(word))
		}
	}
	return template.HTML(b.String())
}

func isAsked(word string, asked []string) bool {
	return slices.ContainsFunc(wordsOf(word), func(w string) bool { return slices.Contains(asked, w) })
}

// found answers a search with a page.
func (s *site) found(query string) (httpapi.Static, error) {
	if n := utf8.RuneCountInString(query); n > maxQuery {
		return httpapi.Static{}, httpapi.Errorf(http.StatusBadRequest, "q has %d letters, and may have %d", n, maxQuery)
	}
	var out bytes.Buffer
	if err := listed.Execute(&out, s.index.search(query)); err != nil {
		return httpapi.Static{}, err
	}
	return s.show(page{title: "Search", html: template.HTML(out.String())}, query)
}
