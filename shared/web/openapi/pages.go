package openapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"strings"

	"github.com/affinityengine/affinity/shared/web/openapi/internal/tree"
)

var (
	//go:embed assets/page.html
	pageHTML string
	//go:embed assets/style.css
	styleCSS string

	pageTemplate = template.Must(template.New("page").Parse(pageHTML))

	// contentPolicy lets a page use its own style, which it holds inline, and
	// nothing else.
	contentPolicy = "default-src 'none'; style-src 'sha256-" + styleHash() +
		"'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

func styleHash() string {
	sum := sha256.Sum256([]byte(styleCSS))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// page is what the template shows.
type page struct {
	Style      template.CSS
	Title      string
	About      template.HTML
	Nav        []link
	Operations []*operation
	Groups     []group // of the index only
}

type link struct {
	Name, Title string
	Here        bool
}

// group is a resource with its operations, in the index.
type group struct {
	link
	Operations []*operation
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
	Title, Request, Status, Answer string
}

// render makes all pages of a document, by their paths.
func render(document []byte) (map[string][]byte, error) {
	v, err := tree.Decode(document)
	if err != nil {
		return nil, err
	}
	doc, ok := v.(*tree.Object)
	if !ok {
		return nil, errors.New("render pages: the document is not an object")
	}
	d := description{doc}
	pages := map[string][]byte{}
	index := page{Title: doc.At("info").Text("title") + " API", About: markdown(doc.At("info").Text("description"))}
	for _, tag := range doc.Objects("tags") {
		name := tag.Text("name")
		p := page{Title: tag.Text("x-title"), About: markdown(tag.Text("description"))}
		listed := map[string]bool{}
		for _, at := range d.operations(name) {
			p.Operations = append(p.Operations, d.operation(at, listed))
		}
		if pages["/docs/"+name], err = d.page(p, name); err != nil {
			return nil, err
		}
		index.Groups = append(index.Groups, group{link{Name: name, Title: p.Title}, p.Operations})
	}
	pages["/docs"], err = d.page(index, "")
	return pages, err
}

// description reads a document.
type description struct{ *tree.Object }

func (d description) page(p page, name string) ([]byte, error) {
	p.Style = template.CSS(styleCSS)
	for _, tag := range d.Objects("tags") {
		p.Nav = append(p.Nav, link{tag.Text("name"), tag.Text("x-title"), tag.Text("name") == name})
	}
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, p); err != nil {
		return nil, fmt.Errorf("render page %q: %w", name, err)
	}
	return out.Bytes(), nil
}

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
		Resource: op.Texts("tags")[0], About: markdown(op.Text("description")),
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
		a := answer{Status: code, About: inline(r.Text("description"))}
		for _, kind := range r.At("content").Keys() {
			a.ContentType, a.Objects = kind, d.objects(r.At("content", kind, "schema"), listed, true)
		}
		o.Answers = append(o.Answers, a)
	}
	for _, e := range op.Objects("x-errors") {
		o.Errors = append(o.Errors, fault{fmt.Sprint(e.Value("status")), code(e.Text("message")), inline(e.Text("when"))})
	}
	for _, e := range op.Objects("x-examples") {
		o.Examples = append(o.Examples, example{e.Text("title"), curl(op.Object, e), fmt.Sprint(e.Value("status")),
			e.Text("answer")})
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
