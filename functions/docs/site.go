package docs

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/web/httpapi"
	"github.com/affinityengine/affinity/shared/web/markdown"
	"github.com/affinityengine/affinity/shared/web/openapi"
)

var (
	//go:embed README.md guides reference operate design
	documents embed.FS

	//go:embed assets/*.html
	assets embed.FS
	//go:embed assets/style.css
	style string
	//go:embed assets/docs.js
	behaviour string

	frame  = template.Must(template.ParseFS(assets, "assets/page.html"))
	listed = template.Must(template.ParseFS(assets, "assets/found.html"))

	// contentPolicy lets a page use its own style and script, which it holds inline, and
	// reach its own origin, where an example is tried.
	contentPolicy = "default-src 'none'; style-src " + hash(style) + "; script-src " + hash(behaviour) +
		"; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

// Files are the documents as they are in the repository.
func Files() fs.FS { return documents }

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

const (
	here   = "functions/docs"                                        // this folder in the repository
	source = "https://github.com/affinityengine/affinity/blob/main/" // where the rest of it is
)

// kinds are the groups of pages, in the order in which a reader sees them.
var kinds = []struct {
	folder, title string
	readers       Readers
}{
	{"guides", "Guides", ForClients},
	{"reference", "Reference", ForClients},
	{"api", "Routes of the API", ForClients},
	{"operate", "Operate", ForOperators},
	{"design", "Design", ForOperators},
}

// page is one page of the site.
type page struct {
	path, kind, title string
	html              template.HTML
	sections          []markdown.Section
}

// site are all pages for some readers, rendered.
type site struct {
	readers Readers
	pages   []page
	answers map[string]httpapi.Static // by path
	index   *index
}

func newSite(readers Readers) (*site, error) {
	s := &site{readers: readers, answers: map[string]httpapi.Static{}}
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := documents.ReadFile(name)
		if err != nil {
			return nil, err
		}
		made, err := markdown.Parse(text, func(target string) string { return s.link(name, target) })
		if err != nil {
			return nil, fmt.Errorf("render %s: %w", name, err)
		}
		folder, _, _ := strings.Cut(name, "/")
		s.pages = append(s.pages, page{address(name), folder, made.Title, made.HTML, made.Sections})
	}
	described, err := openapi.Pages()
	if err != nil {
		return nil, err
	}
	for _, p := range described {
		s.pages = append(s.pages, page{"/docs/" + p.Name, "api", p.Title, p.HTML, p.Sections})
	}
	for _, p := range s.pages {
		if s.answers[p.path], err = s.show(p, ""); err != nil {
			return nil, fmt.Errorf("show %s: %w", p.path, err)
		}
	}
	public, err := openapi.Public()
	s.answers["/openapi.json"] = httpapi.NewStatic("application/json; charset=utf-8", public)
	s.index = newIndex(s.pages)
	return s, err
}

// names are the files of the readers' pages: first those that a README links, in its order.
func (s *site) names() (names []string, err error) {
	err = fs.WalkDir(documents, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".md" && s.shows(name) {
			names = append(names, name)
		}
		return err
	})
	order := map[string]int{}
	place := func(name string) {
		if order[name] == 0 {
			order[name] = len(order) - 1<<10
		}
	}
	for _, folder := range []string{"", "guides/", "guides/engines/", "reference/commands/"} {
		list := folder + "README.md"
		text, err := documents.ReadFile(list)
		if err != nil {
			return nil, err
		}
		place(list)
		_, err = markdown.Parse(text, func(target string) string {
			file, _, _ := strings.Cut(target, "#")
			place(path.Join(path.Dir(list), file))
			return target
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return order[a] - order[b] })
	return names, err
}

// shows reports whether the readers see a file of this folder.
func (s *site) shows(name string) bool {
	if _, err := fs.Stat(documents, name); err != nil {
		return false
	}
	for _, k := range kinds {
		if strings.HasPrefix(name, k.folder+"/") {
			return s.readers >= k.readers
		}
	}
	return name == "README.md"
}

// address is the path of a file's page.
func address(name string) string {
	name = strings.TrimSuffix(strings.TrimSuffix(name, "README.md"), ".md")
	return strings.TrimSuffix("/docs/"+name, "/")
}

// link returns where a link of a file leads: to a page, or to the file in the repository.
func (s *site) link(from, target string) string {
	if strings.Contains(target, ":") || strings.HasPrefix(target, "#") || strings.HasPrefix(target, "/") {
		return target
	}
	file, anchor, found := strings.Cut(target, "#")
	if found {
		anchor = "#" + anchor
	}
	if name := path.Join(path.Dir(from), file); path.Ext(name) == ".md" && s.shows(name) {
		return address(name) + anchor
	}
	return source + path.Join(here, path.Dir(from), file) + anchor
}

// shown is what the frame of a page has.
type shown struct {
	Title, Query string
	Console      bool
	Groups       []group
	HTML         template.HTML
	Style        template.CSS
	Script       template.JS
}

type group struct {
	Title string
	Open  bool
	Pages []entry
}

type entry struct {
	Path, Title string
	Here        bool
}

// show puts a page into its frame. query is what its reader searches.
func (s *site) show(p page, query string) (httpapi.Static, error) {
	all := shown{Title: p.title, Query: query, Console: s.readers >= ForOperators, HTML: p.html,
		Style: template.CSS(style), Script: template.JS(behaviour)}
	for _, k := range kinds {
		if s.readers < k.readers {
			continue
		}
		g := group{Title: k.title, Open: k.folder == p.kind || p.path == "/docs"}
		for _, other := range s.pages {
			// A page of a folder within the folder, such as that of one search engine, is listed beside its own.
			within := path.Dir(other.path) == "/docs/"+k.folder || path.Dir(other.path) == "/docs"
			if other.kind == k.folder && (within || path.Dir(other.path) == path.Dir(p.path) || other.path == p.path) {
				g.Pages = append(g.Pages, entry{other.path, other.title, other.path == p.path})
			}
		}
		all.Groups = append(all.Groups, g)
	}
	var out bytes.Buffer
	if err := frame.Execute(&out, all); err != nil {
		return httpapi.Static{}, err
	}
	return httpapi.NewStatic("text/html; charset=utf-8", out.Bytes()), nil
}
