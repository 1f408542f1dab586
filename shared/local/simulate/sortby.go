package simulate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxDepth is how deep parentheses may stand in each other. Typesense has no such
// limit in words, but one query must not exhaust the stack.
const maxDepth = 100

// parser reads the language of sort_by and of filters.
type parser struct {
	text      string
	before30  bool // a clause of _eval ends at its parenthesis even in backticks
	operators int  // of the clause that is read
	depth     int  // of parentheses
}

// parseSortBy reads `_text_match(buckets: 10):desc,_eval([(brand:=Apple):3]):desc`.
func parseSortBy(text string, before30 bool) ([]sortField, error) {
	p := &parser{text: text, before30: before30}
	var fields []sortField
	evals := 0
	for {
		var f sortField
		var err error
		switch {
		case p.take("_text_match"):
			f.buckets, err = p.buckets()
		case p.take("_eval"):
			evals++
			f.clauses, err = p.clauses()
		default:
			err = p.expected("_text_match or _eval")
		}
		if err != nil {
			return nil, err
		}
		if !p.take(":desc") {
			return nil, p.expected(":desc")
		}
		fields = append(fields, f)
		if !p.take(",") {
			break
		}
	}
	switch {
	case p.rest() != "":
		return nil, p.expected("the end")
	case len(fields) > typesenseSortFields:
		return nil, fmt.Errorf("%d fields, more than %d", len(fields), typesenseSortFields)
	case evals > 1:
		return nil, errors.New("more than one _eval")
	}
	return fields, nil
}

func (p *parser) buckets() (int, error) {
	if !p.take("(") {
		return 0, nil
	}
	if !p.take("buckets") || !p.take(":") {
		return 0, p.expected("buckets:")
	}
	n, err := p.integer()
	if err != nil || n < 1 {
		return 0, p.expected("a number of buckets")
	}
	if !p.take(")") {
		return 0, p.expected(")")
	}
	return int(n), nil
}

// clauses reads ([(expression):score, ...]). Like Typesense it first cuts the text at
// parentheses and colons, and reads each expression by itself.
func (p *parser) clauses() ([]clause, error) {
	if !p.take("(") || !p.take("[") {
		return nil, p.expected("([")
	}
	list := []clause{}
	for len(list) == 0 || !p.take("]") {
		_, text, ok := strings.Cut(p.text, "(")
		end := p.closing(text)
		if !ok || end < 0 {
			return nil, p.expected("a clause in parentheses")
		}
		expression := &parser{text: text[:end]}
		holds, err := expression.either()
		switch {
		case err != nil:
			return nil, err
		case expression.rest() != "":
			return nil, expression.expected("the end of the clause")
		case expression.operators > typesenseOperators:
			return nil, fmt.Errorf("a clause has %d operators, more than %d", expression.operators, typesenseOperators)
		}
		_, text, _ = strings.Cut(text[end:], ":")
		digits := text[:max(strings.IndexAny(text, ",]"), 0)]
		score, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the score %.40q of a clause is no integer", digits)
		}
		list = append(list, clause{holds, float64(score)})
		p.text = text[len(digits):]
	}
	if !p.take(")") {
		return nil, p.expected(")")
	}
	return list, nil
}

// closing returns where the parenthesis ends that began before a text, or -1.
func (p *parser) closing(text string) int {
	depth, quoted := 1, false
	for i := range len(text) {
		switch c := text[i]; {
		case c == '`':
			quoted = !quoted && !p.before30
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

type predicate = func(Document) bool

// either reads conditions that || joins, and both those that && joins.
func (p *parser) either() (predicate, error) {
	left, err := p.both()
	for err == nil && p.take("||") {
		p.operators++
		var right predicate
		right, err = p.both()
		left = func(a, b predicate) predicate {
			return func(d Document) bool { return a(d) || b(d) }
		}(left, right)
	}
	return left, err
}

func (p *parser) both() (predicate, error) {
	left, err := p.condition()
	for err == nil && p.take("&&") {
		p.operators++
		var right predicate
		right, err = p.condition()
		left = func(a, b predicate) predicate {
			return func(d Document) bool { return a(d) && b(d) }
		}(left, right)
	}
	return left, err
}

// condition reads field:=value, field:=[value,value] or a condition in parentheses.
func (p *parser) condition() (predicate, error) {
	if p.take("(") {
		if p.depth++; p.depth > maxDepth {
			return nil, fmt.Errorf("more than %d parentheses in each other", maxDepth)
		}
		inner, err := p.either()
		p.depth--
		if err == nil && !p.take(")") {
			err = p.expected(")")
		}
		return inner, err
	}
	rest := p.rest()
	at := strings.Index(rest, ":=")
	if at <= 0 || strings.ContainsAny(rest[:at], "`()[]&|,: ") {
		return nil, p.expected("field:=value")
	}
	field := rest[:at]
	p.text = rest[at+len(":="):]
	var values []string
	many := p.take("[")
	for {
		value, err := p.value()
		if err != nil {
			return nil, err
		}
		if value = words(value); value == "" {
			return nil, p.expected("a value with a letter or a digit")
		}
		values = append(values, value)
		if !many || !p.take(",") {
			break
		}
	}
	if many && !p.take("]") {
		return nil, p.expected("]")
	}
	return func(d Document) bool {
		for _, v := range values {
			if d.has(field, v, exactly) {
				return true
			}
		}
		return false
	}, nil
}

// value reads a value in backticks, or one that ends where the language goes on. A
// backtick without a second one holds to the end.
func (p *parser) value() (string, error) {
	rest := p.rest()
	if quoted, ok := strings.CutPrefix(rest, "`"); ok {
		value, after, _ := strings.Cut(quoted, "`")
		if value == "" {
			return "", p.expected("a value in backticks")
		}
		p.text = after
		return value, nil
	}
	end := strings.IndexAny(rest, "()[]&|,:")
	if end < 0 {
		end = len(rest)
	}
	value := strings.TrimSpace(rest[:end])
	if value == "" {
		return "", p.expected("a value")
	}
	p.text = rest[end:]
	return value, nil
}

func (p *parser) integer() (int64, error) {
	rest := p.rest()
	end := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && r != '-' })
	if end < 0 {
		end = len(rest)
	}
	n, err := strconv.ParseInt(rest[:end], 10, 64)
	if err != nil {
		return 0, p.expected("an integer")
	}
	p.text = rest[end:]
	return n, nil
}

// take skips a word of the language, and reports whether it was there.
func (p *parser) take(word string) bool {
	after, ok := strings.CutPrefix(p.rest(), word)
	if ok {
		p.text = after
	}
	return ok
}

// rest is what has not been read, without spaces before it.
func (p *parser) rest() string { return strings.TrimLeft(p.text, " ") }

func (p *parser) expected(what string) error {
	rest := p.rest()
	return fmt.Errorf("want %s at %.40q", what, rest)
}
