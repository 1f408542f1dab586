package openapi

import (
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/web/markdown"
	"github.com/affinityengine/affinity/shared/web/openapi/internal/tree"
)

// This file renders the fields of requests and answers: their types, limits and
// defaults as people read them.

const (
	required = "required"
	optional = "may be absent"
)

// objects lists a schema with its fields, and after it those that its fields
// name. Of a request, required fields are noted; of an answer, optional ones.
func (d description) objects(schema *tree.Object, listed map[string]bool, answered bool) []object {
	name := refName(schema)
	target := d.follow(schema)
	if !target.Has("properties") {
		var all []object
		for _, one := range target.Objects("anyOf") {
			all = append(all, d.objects(one, listed, answered)...)
		}
		return all
	}
	o := object{Name: name, About: markdown.Inline(target.Text("description")), Limit: target.Text("x-limit"),
		Listed: listed[name]}
	if o.Listed {
		return []object{o}
	}
	listed[name] = true
	always := target.Texts("required")
	var more []*tree.Object
	for _, key := range target.At("properties").Keys() {
		property := target.At("properties", key)
		f := d.field(key, property, property.Text("description"))
		switch there := slices.Contains(always, key); {
		case there && !answered:
			f.Note = required
		case !there && answered:
			f.Note = optional
		}
		o.Fields = append(o.Fields, f)
		more = append(more, d.named(property)...)
	}
	all := []object{o}
	for _, inner := range more {
		if !listed[refName(inner)] {
			all = append(all, d.objects(inner, listed, answered)...)
		}
	}
	return all
}

// named are the schemas with fields that a property's type names.
func (d description) named(property *tree.Object) []*tree.Object {
	if property.Has("$ref") {
		if d.follow(property).Has("properties") {
			return []*tree.Object{property}
		}
		return nil
	}
	var all []*tree.Object
	for _, any := range property.Objects("anyOf") {
		all = append(all, d.named(any)...)
	}
	if items := property.At("items"); items != nil {
		all = append(all, d.named(items)...)
	}
	return all
}

func (d description) field(name string, schema *tree.Object, about string) field {
	f := field{Name: name, Type: d.typeText(schema), About: markdown.Blocks(about)}
	if refs := d.named(schema); len(refs) > 0 {
		f.Ref = refName(refs[0])
	}
	add := func(name, text string) {
		if text != "" {
			f.Facts = append(f.Facts, fact{name, markdown.Inline(text)})
		}
	}
	schema = d.follow(schema)
	add("Unit", schema.Text("x-unit"))
	add("Default", defaultText(schema))
	add("One of", enumText(schema))
	if f.Ref == "" {
		add("Limit", limitText(schema))
	}
	return f
}

func defaultText(schema *tree.Object) string {
	if schema.Has("default") {
		return "`" + fmt.Sprint(schema.Value("default")) + "`"
	}
	return schema.Text("x-default")
}

func enumText(schema *tree.Object) string {
	var words []string
	for _, v := range schema.Texts("enum") {
		if v != "" {
			words = append(words, "`"+v+"`")
		}
	}
	return strings.Join(words, ", ")
}

// limitText says what a value is limited to.
func limitText(schema *tree.Object) string {
	if text := schema.Text("x-limit"); text != "" {
		return text
	}
	limits := func(low, high, unit string) string {
		from, to := schema.Value(low), schema.Value(high)
		switch {
		case from != nil && to != nil:
			return fmt.Sprintf("%s to %s%s", number(from), number(to), unit)
		case to != nil:
			return fmt.Sprintf("at most %s%s", number(to), unit)
		case from != nil && number(from) != "0":
			return fmt.Sprintf("at least %s%s", number(from), unit)
		}
		return ""
	}
	for _, text := range []string{
		limits("minimum", "maximum", ""), limits("minLength", "maxLength", " characters"),
		limits("minItems", "maxItems", " entries"),
	} {
		if text != "" {
			return text
		}
	}
	return ""
}

// number writes an integer with commas.
func number(v any) string {
	n, _ := v.(json.Number)
	digits, sign := n.String(), ""
	if strings.HasPrefix(digits, "-") {
		digits, sign = digits[1:], "-"
	}
	for i := len(digits) - 3; i > 0 && len(n.String()) > 4; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// typeText names the type of a schema: string, list of Event, Time or null.
func (d description) typeText(schema *tree.Object) string {
	if text := schema.Text("x-type"); text != "" {
		return text
	}
	if schema.Has("$ref") {
		if target := d.follow(schema); target.Has("x-type") {
			return target.Text("x-type")
		}
		return refName(schema)
	}
	var names []string
	for _, one := range schema.Objects("anyOf") {
		names = append(names, d.typeText(one))
	}
	types := schema.Texts("type")
	if t := schema.Text("type"); t != "" {
		types = []string{t}
	}
	for _, t := range types {
		switch {
		case t == "null" && len(types) > 1: // in requests, where it means absent
		case t == "array":
			names = append(names, "list of "+d.typeText(schema.At("items")))
		case t == "object" && schema.At("additionalProperties") != nil:
			names = append(names, "object of "+d.typeText(schema.At("additionalProperties")))
		default:
			names = append(names, t)
		}
	}
	return strings.Join(names, " or ")
}

// curl writes an example of an operation as a command.
func curl(op, e *tree.Object) string {
	var b strings.Builder
	b.WriteString("curl ")
	if method := e.Text("method"); method != "GET" && (method != "POST" || !e.Has("body")) {
		b.WriteString("-X " + method + " ")
	}
	fmt.Fprintf(&b, "'http://127.0.0.1:8080%s'", e.Text("path"))
	switch {
	case op.True("x-operator"):
		b.WriteString(" \\\n  -H \"Authorization: Bearer $AFFINITY_OPERATOR\"")
	case !op.True("x-no-key"):
		b.WriteString(" \\\n  -H 'X-Algolia-Application-Id: demo' -H 'X-Algolia-API-Key: demokey'")
	}
	if header := e.Text("header"); header != "" {
		b.WriteString(" \\\n  -H '" + header + "'")
	}
	switch text := e.Text("body"); {
	case text == "":
	case strings.ContainsAny(text, "\n'"):
		b.WriteString(" \\\n  --data-binary @- <<'END'\n" + text + "\nEND")
	default:
		b.WriteString(" \\\n  -d '" + text + "'")
	}
	return b.String()
}

// script writes an example of an operation as JavaScript.
func script(op, e *tree.Object) string {
	var headers []string
	switch {
	case op.True("x-operator"):
		headers = append(headers, "'Authorization': 'Bearer ' + operator")
	case !op.True("x-no-key"):
		headers = append(headers, "'X-Algolia-Application-Id': 'demo'", "'X-Algolia-API-Key': 'demokey'")
	}
	if name, value, ok := strings.Cut(e.Text("header"), ": "); ok {
		headers = append(headers, "'"+name+"': '"+value+"'")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "const answer = await fetch('http://127.0.0.1:8080%s', {\n  method: '%s',\n",
		e.Text("path"), e.Text("method"))
	if len(headers) > 0 {
		b.WriteString("  headers: { " + strings.Join(headers, ", ") + " },\n")
	}
	switch body := e.Text("body"); {
	case body == "":
	case json.Valid([]byte(body)):
		b.WriteString("  body: JSON.stringify(" + body + "),\n")
	default:
		b.WriteString("  body: `" + strings.ReplaceAll(body, "`", "\\`") + "`,\n")
	}
	b.WriteString("});\nconsole.log(answer.status, await answer.text());")
	return b.String()
}

func code(text string) template.HTML {
	return template.HTML("<code>" + template.HTMLEscapeString(text) + "</code>")
}
