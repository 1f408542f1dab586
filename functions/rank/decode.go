package rank

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/serve/ranker"
)

// request is a body whose fields are checked, but for the half-life and the
// version of the strategy, which depend on the app.
type request struct {
	id         string // empty: make one
	draftBytes int    // of the draft in the body
	// weighs is the first option of the body that weighs the user's profile, and tells
	// more of it than an order does; empty: none.
	weighs string
	ranker.Request
	list    *candidateList
	exclude []string // objects that the answer does not have
}

// release gives back the memory of the candidates. Nothing may use them after it.
func (r *request) release() {
	r.list.reset()
	lists.Put(r.list)
	r.list, r.Candidates = nil, nil
}

// decode reads a body. users are the users that headers name: the body may leave its
// own out, and must not name another. Every error is a *fault.Error: Malformed if the body is
// not JSON, and Invalid for everything else.
func decode(body []byte, users []string) (request, error) {
	if !utf8.Valid(body) {
		return request{}, malformed("the body is not valid UTF-8")
	}
	list, text := lists.Get().(*candidateList), string(body)
	if rest, ok := cut(text, list); ok {
		if r, err := decodeText(rest, users, &candidateList{}); err == nil {
			r.list, r.Candidates = list, list.all
			r.leaveOut()
			return r, nil
		}
	}
	list.reset()
	return decodeText(text, users, list)
}

// decodeText reads a body with its candidates, which it adds to an empty list.
func decodeText(text string, users []string, list *candidateList) (request, error) {
	d := newDecoder(text, list)
	if err := d.read(d.field); err != nil {
		return request{}, err
	}
	d.out.Candidates = list.all
	d.out.leaveOut()
	return d.out, d.complete(users)
}

// lenient takes escapes that are half a surrogate pair, as the catalog does.
var lenient = jsontext.AllowInvalidUTF8(true)

func newDecoder(text string, list *candidateList) *decoder {
	return &decoder{json: jsontext.NewDecoder(bytes.NewBufferString(text), lenient), text: text, out: request{list: list}}
}

// read reads the whole body, an object. field reads the value of a key.
func (d *decoder) read(field func(name string) error) error {
	err := d.request(field)
	if err == nil {
		if _, err = d.json.ReadToken(); err == io.EOF {
			return nil
		}
		return malformed("there is more after the end of the JSON object")
	}
	var refused *fault.Error
	if !errors.As(err, &refused) {
		return notJSON(err)
	}
	// What breaks off later is not JSON, whatever else is wrong with it.
	if rest := jsontext.Value(d.text); !d.notFinite && !rest.IsValid(lenient, jsontext.AllowDuplicateNames(true)) {
		return malformed("the body is not valid JSON")
	}
	return refused
}

func malformed(message string) error {
	return fault.New(fault.Malformed, "Bad Request: %s", message)
}

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// notJSON is the error for what the JSON library does not accept.
func notJSON(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) && syntax.Err == jsontext.ErrDuplicateName {
		return invalid("%s is there twice", path(syntax.JSONPointer))
	}
	return malformed("the body is not valid JSON: " + strings.TrimPrefix(err.Error(), "jsontext: "))
}

// decoder reads one body token by token.
type decoder struct {
	json *jsontext.Decoder
	text string // the body: all strings are cut from it
	out  request

	objectIDs, items bool // which of the two keys the body has
	notFinite        bool // the body has NaN or an infinity, which is not JSON
}

// complete checks what the request must have.
func (d *decoder) complete(users []string) error {
	if err := d.completeUser(users); err != nil {
		return err
	}
	switch {
	case d.out.User == "":
		return invalid("userToken is required")
	case d.out.Index == "":
		return invalid("index is required")
	case !d.objectIDs && !d.items:
		return invalid("the candidates are required: objectIDs, or items")
	case d.objectIDs && d.items:
		return invalid("the candidates must be in objectIDs or in items, not in both")
	}
	return d.completeStrategy()
}

// completeUser takes the user that headers name.
func (d *decoder) completeUser(users []string) error {
	for _, user := range users {
		if d.out.User != "" && d.out.User != user {
			return invalid("userToken and the headers x-algolia-usertoken name different users")
		}
		if err := d.name("userToken", user); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) completeStrategy() error {
	if d.out.Draft != nil && d.out.Version > 0 {
		return invalid("strategy names a version and draft brings a strategy: give one of them")
	}
	return nil
}

func (d *decoder) request(field func(name string) error) error {
	if kind := d.json.PeekKind(); kind != jsontext.KindBeginObject {
		return d.wrong("an object", kind)
	}
	return d.object(field)
}

// field reads the value of a key. null equals absent.
func (d *decoder) field(name string) error {
	switch name {
	case "id", "userToken", "index", "objectIDs", "items", "limit", "impact", "halfLife", "explain", "seen",
		"diversity", "strategy", "draft", "exclude", "placement":
	default:
		return invalid("Unknown field %s", quote(name))
	}
	if d.json.PeekKind() == jsontext.KindNull {
		return d.json.SkipValue()
	}
	switch name {
	case "impact", "halfLife", "explain", "seen", "strategy", "draft":
		d.out.weighs = cmp.Or(d.out.weighs, name)
	}
	switch name {
	case "objectIDs":
		d.objectIDs = true
		return d.list(func() error {
			id, err := d.objectID()
			if err == nil {
				d.out.list.add(ranking.Candidate{ObjectID: id})
			}
			return err
		})
	case "items":
		d.items = true
		return d.list(d.item)
	case "exclude":
		return d.ids(&d.out.exclude, api.MaxExcluded)
	case "limit":
		return d.integer(1, math.MaxInt32, "a positive integer", func(n int) { d.out.Limit = n })
	case "impact":
		return d.integer(0, strategy.MaxImpact, "an integer from 0 to 100", func(n int) { d.out.Impact = &n })
	case "strategy":
		return d.integer(1, math.MaxInt64, "the version of a strategy, 1 or higher", func(n int) { d.out.Version = int64(n) })
	case "halfLife":
		return d.halfLife()
	case "diversity":
		return d.diversity()
	case "draft":
		return d.draft()
	case "explain":
		return d.boolean(&d.out.Explain)
	}
	text, err := d.string()
	if err != nil {
		return err
	}
	return d.name(name, text)
}

// name takes a value that is a string.
func (d *decoder) name(field, text string) error {
	switch field {
	case "id":
		if d.out.id = text; !isID(text) {
			return invalid("id must have 32 hexadecimal digits, got %s", quote(text))
		}
	case "userToken":
		if d.out.User = text; !event.ValidUserToken(text) {
			return invalid("UserToken must contain only alphanumeric, equal, plus, slash, " +
				"hyphen, or underscore characters, and be between 1 and 129 characters long")
		}
	case "index":
		if d.out.Index = text; !catalog.ValidIndex(text) {
			return invalid("index must have 1 to %d bytes", api.MaxIndex)
		}
	case "placement":
		d.out.Placement = text
	case "seen":
		switch d.out.Seen = ranking.Seen(text); d.out.Seen {
		case ranking.Keep, ranking.Demote, ranking.Exclude:
		default:
			return invalid("seen must be keep, demote or exclude, got %s", quote(text))
		}
	}
	return nil
}

// item reads {"id":"A","fields":[{"name":"relevancy","value":2.0}]}.
func (d *decoder) item() error {
	if kind := d.json.PeekKind(); kind != jsontext.KindBeginObject {
		return d.wrong("an object", kind)
	}
	var c ranking.Candidate
	err := d.object(func(name string) (err error) {
		switch name {
		case "id":
			c.ObjectID, err = d.objectID()
		case "fields":
			err = d.fields(&c)
		default:
			err = invalid("Unknown field %s in %s", quote(name), path(parent(d.json.StackPointer())))
		}
		return err
	})
	if err != nil {
		return err
	}
	if c.ObjectID == "" {
		return invalid("%s.id is required", path(d.json.StackPointer()))
	}
	d.out.list.add(c)
	return nil
}

// fields reads the fields of a candidate. null equals absent.
func (d *decoder) fields(c *ranking.Candidate) error {
	switch kind := d.json.PeekKind(); kind {
	case jsontext.KindNull:
		return d.json.SkipValue()
	case jsontext.KindBeginArray:
	default:
		return d.wrong("a list", kind)
	}
	return d.array(func() error {
		if kind := d.json.PeekKind(); kind != jsontext.KindBeginObject {
			return d.wrong("an object", kind)
		}
		name, valued := "", false
		var value float64
		err := d.object(func(key string) (err error) {
			switch key {
			case "name":
				name, err = d.string()
			case "value":
				valued = true
				value, err = d.number()
			default:
				err = invalid("Unknown field %s in %s", quote(key), path(parent(d.json.StackPointer())))
			}
			return err
		})
		switch {
		case err != nil:
			return err
		case name != api.FieldRelevancy:
			return invalid("%s.name must be %s, got %s", path(d.json.StackPointer()), api.FieldRelevancy, quote(name))
		case !valued:
			return invalid("%s.value is required", path(d.json.StackPointer()))
		case c.HasRelevancy:
			return invalid("%s gives the relevancy of the item a second time", path(d.json.StackPointer()))
		}
		c.Relevancy, c.HasRelevancy = value, true
		return nil
	})
}

// list reads the candidates.
func (d *decoder) list(element func() error) error {
	if kind := d.json.PeekKind(); kind != jsontext.KindBeginArray {
		return d.wrong("a list", kind)
	}
	n := 0
	return d.array(func() error {
		if n++; n > api.MaxCandidates {
			return invalid("a request has at most %d candidates", api.MaxCandidates)
		}
		return element()
	})
}

func (d *decoder) objectID() (string, error) {
	id, err := d.string()
	if err == nil && (id == "" || len(id) > catalog.MaxObjectID) {
		err = invalid("%s must have 1 to %d bytes, got %d", path(d.json.StackPointer()), catalog.MaxObjectID, len(id))
	}
	return id, err
}

func (d *decoder) halfLife() error {
	value, err := d.json.ReadValue()
	if err != nil {
		return err
	}
	if err := d.out.HalfLife.UnmarshalJSON(value); err != nil {
		return invalid("halfLife: %v", err)
	}
	return nil
}

func (d *decoder) diversity() error {
	value, err := d.json.ReadValue()
	if err == nil {
		d.out.Diversity, err = strategy.DecodeDiversity(value)
	}
	return err
}

// draft reads a strategy. Its faults are those that POST /1/strategies/personalization
// names, behind the name of the field.
func (d *decoder) draft() error {
	if kind := d.json.PeekKind(); kind != jsontext.KindBeginObject {
		return d.wrong("a strategy", kind)
	}
	value, err := d.json.ReadValue()
	if err != nil {
		return err
	}
	if len(value) > api.MaxStrategyBody {
		return invalid("draft must have at most %d bytes, got %d", api.MaxStrategyBody, len(value))
	}
	d.out.draftBytes = len(value)
	s, err := strategy.Decode(value)
	var refused *fault.Error
	if errors.As(err, &refused) {
		named := fault.New(fault.Invalid, "draft: %s", refused.Message)
		for _, other := range refused.Others {
			named.Others = append(named.Others, "draft: "+other)
		}
		return named
	}
	d.out.Draft = &s
	return err
}

// isID reports whether a text has 32 hexadecimal digits.
func isID(text string) bool {
	return len(text) == 32 && strings.Trim(text, "0123456789abcdefABCDEF") == ""
}

func quote(text string) string {
	const longest = 100 // bytes of the client's text in a message
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "..."
	}
	return strconv.Quote(text)
}
