package openapi

import (
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	"github.com/affinityengine/affinity/shared/web/markdown"
	"github.com/affinityengine/affinity/shared/web/openapi/internal/tree"
)

var (
	//go:embed page.html
	pageHTML string

	pageTemplate = template.Must(template.New("page").Parse(pageHTML))
)

// Page is a page about the API, as a part of an HTML document that has the title.
type Page struct {
	Name, Title string
	HTML        template.HTML
	Sections    []markdown.Section // of a resource: one for each route, by its ID
}

// page is what the template shows.
type page struct {
	About      template.HTML
	Reference  string // the page of the documents about a resource, "" for none
	Operations []*operation
	Groups     []group // of the index only
}

// group is a resource with its operations, in the index.
type group struct {
	Name, Title string
	Operations  []*operation
}

// operation is a route with one method.
type operation struct {
	ID, Method, Path, Summary string
	Resource                  string
	About                     template.HTML
	ACL                       []string
	ACLNote                   string
	Local                     bool
	Parameters                []field
	Body                      *body
	Answers                   []answer
	Errors                    []fault
	Examples                  []example
}

type body struct {
	ContentType, Limit string
	Required           bool
	Objects            []object
}

type answer struct {
	Status, ContentType string
	About               template.HTML
	Objects             []object
}

// object is a schema whose fields are listed. One that the page lists already is
// only named.
type object struct {
	Name   string
	About  template.HTML
	Limit  string
	Listed bool
	Fields []field
}

// field is a parameter or a property.
type field struct {
	Name, Type string
	Ref        string // the schema that the type names, if the page lists it
	In         string // of parameters: path or query
	// Note is "required" in requests, and "may be absent" in answers.
	Note  string
	About template.HTML
	Facts []fact
}

type fact struct {
	Name string
	Text template.HTML
}

type fault struct {
	Status        string
	Message, When template.HTML
}

type example struct {
	Title, Curl, Script, Status, Answer string
	Method, Path, Header, Body          string
	Key                                 bool // the request names an app and its key
}

// Pages renders the description: first what all routes share, named api, and then a
// page for each resource.
func Pages() ([]Page, error) {
	doc, err := decode()
	if err != nil {
		return nil, err
	}
	d, pages, index := description{doc}, []Page{{}}, page{}
	for _, tag := range doc.Objects("tags") {
		g, listed := group{Name: tag.Text("name"), Title: tag.Text("x-title")}, map[string]bool{}
		sections := []markdown.Section{{}}
		for _, at := range d.operations(g.Name) {
			o := d.operation(at, listed)
			g.Operations = append(g.Operations, o)
			said, err := markdown.Parse([]byte(at.Text("description")), unchanged)
			if err != nil {
				return nil, err
			}
			sections = append(sections, markdown.Section{ID: o.ID, Title: o.Summary,
				Text: o.Method + " " + o.Path + "\n" + said.Sections[0].Text})
		}
		index.Groups = append(index.Groups, g)
		shown, err := page{About: markdown.Blocks(tag.Text("description")), Reference: tag.Text("x-reference"),
			Operations: g.Operations}.render()
		if err != nil {
			return nil, fmt.Errorf("render page %q: %w", g.Name, err)
		}
		pages = append(pages, Page{g.Name, g.Title, shown, sections})
	}
	about, err := markdown.Parse([]byte(doc.At("info").Text("description")), unchanged)
	if err != nil {
		return nil, err
	}
	index.About = about.HTML
	shown, err := index.render()
	pages[0] = Page{"api", "The API", shown, about.Sections}
	return pages, err
}

// unchanged is for links within the pages of a description, which are absolute.
func unchanged(target string) string { return target }

func (p page) render() (template.HTML, error) {
	var out strings.Builder
	err := pageTemplate.Execute(&out, p)
	return template.HTML(out.String()), err
}

// description reads a document.
type description struct{ *tree.Object }

// place is where an operation is.
type place struct {
	path, method string
	*tree.Object
}

// operations are those of a tag, in the order of their paths, and of a path in
// the order of the source.
func (d description) operations(tag string) []place {
	var places []place
	for _, path := range d.At("paths").Keys() {
		for _, method := range d.At("paths", path).Keys() {
			op := d.At("paths", path, method)
			if tags := op.Texts("tags"); len(tags) == 1 && tags[0] == tag {
				places = append(places, place{path, method, op})
			}
		}
	}
	return places
}

// operation describes an operation; listed are the schemas whose fields the page
// shows already.
func (d description) operation(op place, listed map[string]bool) *operation {
	o := &operation{
		ID: op.Text("operationId"), Method: strings.ToUpper(op.method), Path: op.path, Summary: op.Text("summary"),
		Resource: op.Texts("tags")[0], About: markdown.Blocks(op.Text("description")),
		ACL: op.Texts("x-acl"), ACLNote: op.Text("x-acl-note"), Local: op.True("x-local"),
	}
	for _, p := range op.Objects("parameters") {
		p = d.follow(p)
		f := d.field(p.Text("name"), p.At("schema"), p.Text("description"))
		f.In = p.Text("in")
		if p.True("required") && f.In != "path" {
			f.Note = required
		}
		o.Parameters = append(o.Parameters, f)
	}
	if b := op.At("requestBody"); b != nil {
		o.Body = &body{Limit: op.Text("x-body-limit"), Required: b.True("required")}
		for _, kind := range b.At("content").Keys() {
			schema := b.At("content", kind, "schema")
			if ref := schema.Text("x-lines"); ref != "" {
				line := &tree.Object{}
				line.Set("$ref", ref)
				schema = line
			}
			o.Body.ContentType, o.Body.Objects = kind, d.objects(schema, listed, false)
		}
	}
	for _, code := range op.At("responses").Keys() {
		if code >= "400" {
			continue
		}
		r := op.At("responses", code)
		a := answer{Status: code, About: markdown.Inline(r.Text("description"))}
		for _, kind := range r.At("content").Keys() {
			a.ContentType, a.Objects = kind, d.objects(r.At("content", kind, "schema"), listed, true)
		}
		o.Answers = append(o.Answers, a)
	}
	for _, e := range op.Objects("x-errors") {
		when := markdown.Inline(e.Text("when"))
		o.Errors = append(o.Errors, fault{fmt.Sprint(e.Value("status")), code(e.Text("message")), when})
	}
	for _, e := range op.Objects("x-examples") {
		o.Examples = append(o.Examples, example{Title: e.Text("title"), Curl: curl(op.Object, e),
			Script: script(op.Object, e), Status: fmt.Sprint(e.Value("status")), Answer: e.Text("answer"),
			Method: e.Text("method"), Path: e.Text("path"), Header: e.Text("header"), Body: e.Text("body"),
			Key: !op.True("x-no-key") && !op.True("x-operator")})
	}
	return o
}

// follow resolves a reference within the document.
func (d description) follow(o *tree.Object) *tree.Object {
	ref := o.Text("$ref")
	if ref == "" {
		return o
	}
	return d.At(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
}

func refName(o *tree.Object) string {
	return strings.TrimPrefix(o.Text("$ref"), "#/components/schemas/")
}
