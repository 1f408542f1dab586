// Package feed says what a feed is: the objects of an index that meet some conditions,
// the newest first, or in the order of a user's profile.
package feed

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Format is what the items of a feed's answer are.
type Format string

// The formats.
const (
	Records   Format = "records"   // the objects as they were sent
	IDs       Format = "ids"       // their objectIDs
	WordPress Format = "wordpress" // the whole answer is a list of posts, as WordPress sends it
)

// Limits of a definition.
const (
	// MaxDefinition is the size of its JSON in bytes.
	MaxDefinition = 64 << 10
	// maxDate is the length of a dated attribute's path in bytes: it is part of a row's
	// key, where a byte may take three.
	maxDate = 256
	// MaxAgeDays is the highest maxAgeDays.
	MaxAgeDays = 3650
	// maxConditions is how many conditions where has, and maxAlternatives how many
	// filters one of them.
	maxConditions, maxAlternatives = 10, 20
	// maxFilter is the length of a filter in bytes, as in an event.
	maxFilter = 2048
)

// Definition says which objects of an index a feed shows.
type Definition struct {
	Name string `json:"-"`
	// Version counts the changes of the definition of that name, from 1.
	Version int64  `json:"-"`
	Index   string `json:"index"`
	// Date is the dotted path of the attribute by which the feed orders.
	Date string `json:"date"`
	// MaxAgeDays is how old an object may be. 0: there is no limit.
	MaxAgeDays int `json:"maxAgeDays,omitempty"`
	// Where are the conditions, which all hold. Each holds if the object has any of its
	// filters, in the form facet:value.
	Where     [][]string          `json:"where,omitempty"`
	Diversity *strategy.Diversity `json:"diversity,omitempty"`
	Seen      ranking.Seen        `json:"seen"`
	Format    Format              `json:"format"`
	// Public says that anybody may read the order latest, in this format, at the app's own host.
	Public bool `json:"public,omitempty"`
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// reserved are words of routes.
var reserved = []string{"query", "histogram", "refresh", "export", "suggested", "latest"}

// CheckName returns a *fault.Error if no feed can have that name.
func CheckName(name string) error {
	switch {
	case !nameForm.MatchString(name):
		return invalid("the name of a feed has 1 to 64 of A-Z, a-z, 0-9, _ and -, got %s", quote(name))
	case slices.Contains(reserved, name):
		return invalid("a feed cannot be named %s: the word is part of a route", name)
	}
	return nil
}

// Decode decodes the definition of a feed of that name, without its version. Absent and
// null are equal: no limit of age, no condition, no diversity, "keep", "records" and not public.
// Every error is a *fault.Error that names what is wrong.
func Decode(name string, body []byte) (Definition, error) {
	d := Definition{Name: name, Seen: ranking.Keep, Format: Records}
	if err := CheckName(name); err != nil {
		return d, err
	}
	if len(body) > MaxDefinition {
		return d, fault.New(fault.TooLarge, "the body has %d bytes, at most %d are accepted", len(body), MaxDefinition)
	}
	if reason := fault.NotUTF8(body); reason != "" {
		return d, fault.New(fault.Malformed, "the body is not valid UTF-8: %s", reason)
	}
	var sent map[string]jsontext.Value
	if err := jsonv2.Unmarshal(body, &sent); err != nil {
		return d, bodyFault(err)
	}
	if sent == nil {
		return d, fault.New(fault.Malformed, "the body must be a JSON object, got null")
	}
	// In the order of their names, so that the same body has the same fault.
	for _, key := range slices.Sorted(maps.Keys(sent)) {
		if err := d.set(key, sent[key]); err != nil {
			return d, err
		}
	}
	switch {
	case d.Index == "":
		return d, invalid("index is missing")
	case d.Date == "":
		return d, invalid("date is missing: the attribute by which the feed orders")
	}
	return d, nil
}

// set takes the value of a key.
func (d *Definition) set(key string, value jsontext.Value) (err error) {
	if value.Kind() == jsontext.KindNull && key != "index" && key != "date" {
		value = nil
	}
	switch key {
	case "index":
		d.Index, err = text(key, value)
		if err == nil && !catalog.ValidIndex(d.Index) {
			err = invalid("index must have 1 to %d bytes", catalog.MaxIndex)
		}
	case "date":
		d.Date, err = text(key, value)
		if err == nil && (d.Date == "" || len(d.Date) > maxDate) {
			err = invalid("date must have 1 to %d bytes", maxDate)
		}
	case "maxAgeDays":
		if value == nil {
			return nil
		}
		if d.MaxAgeDays, err = strconv.Atoi(string(value)); err != nil || d.MaxAgeDays < 1 || d.MaxAgeDays > MaxAgeDays {
			err = invalid("maxAgeDays must be an integer from 1 to %d, got %s", MaxAgeDays, shorten(string(value)))
		}
	case "where":
		d.Where, err = conditions(value)
	case "diversity":
		if value != nil {
			d.Diversity, err = strategy.DecodeDiversity(value)
		}
	case "seen":
		err = choice(key, value, &d.Seen, "seen must be keep, demote or exclude, got %s", ranking.Keep,
			ranking.Demote, ranking.Exclude)
	case "format":
		err = choice(key, value, &d.Format, "format must be records, ids or wordpress, got %s", Records, IDs, WordPress)
	case "public":
		if d.Public = string(value) == "true"; value != nil && !d.Public && string(value) != "false" {
			err = invalid("public must be true or false, got %s", shorten(string(value)))
		}
	default:
		err = invalid("Unknown field %s", quote(key))
	}
	return err
}

// conditions decodes where: a list of filters, or of lists of filters.
func conditions(value jsontext.Value) ([][]string, error) {
	if value == nil {
		return nil, nil
	}
	var list []jsontext.Value
	if err := jsonv2.Unmarshal(value, &list); err != nil || value.Kind() != jsontext.KindBeginArray {
		return nil, invalid("where must be a list of filters")
	}
	if len(list) > maxConditions {
		return nil, invalid("where has %d conditions, at most %d are accepted", len(list), maxConditions)
	}
	var where [][]string
	for i, entry := range list {
		anyOf := []jsontext.Value{entry}
		if entry.Kind() == jsontext.KindBeginArray {
			if err := jsonv2.Unmarshal(entry, &anyOf); err != nil {
				return nil, bodyFault(err)
			}
		}
		if len(anyOf) < 1 || len(anyOf) > maxAlternatives {
			return nil, invalid("where[%d] must have 1 to %d filters, got %d", i, maxAlternatives, len(anyOf))
		}
		filters := make([]string, len(anyOf))
		for k, f := range anyOf {
			filter, err := text(fmt.Sprintf("where[%d]", i), f)
			if err != nil {
				return nil, err
			}
			if facet, value, _ := strings.Cut(filter, ":"); facet == "" || value == "" || len(filter) > maxFilter {
				return nil, invalid("where[%d] must have the form facet:value and at most %d bytes, got %s", i, maxFilter,
					quote(filter))
			}
			filters[k] = filter
		}
		where = append(where, filters)
	}
	return where, nil
}

// choice takes one of some words. refusal is the message about another one.
func choice[T ~string](key string, value jsontext.Value, into *T, refusal string, words ...T) error {
	if value == nil {
		return nil
	}
	word, err := text(key, value)
	if err != nil {
		return err
	}
	if !slices.Contains(words, T(word)) {
		return invalid(refusal, quote(word))
	}
	*into = T(word)
	return nil
}

func text(key string, value jsontext.Value) (string, error) {
	var s string
	if err := jsonv2.Unmarshal(value, &s); err != nil || value.Kind() != jsontext.KindString {
		return "", invalid("%s must be a string", key)
	}
	return s, nil
}

// bodyFault returns the error of a body that is no JSON object.
func bodyFault(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) && errors.Is(syntax.Err, jsontext.ErrDuplicateName) {
		return invalid("%s is there twice", quote(syntax.JSONPointer.LastToken()))
	}
	if errors.As(err, new(*jsonv2.SemanticError)) {
		return fault.New(fault.Malformed, "the body must be a JSON object")
	}
	return fault.New(fault.Malformed, "the body is not valid JSON: %s", strings.TrimPrefix(err.Error(), "jsontext: "))
}

func invalid(format string, args ...any) *fault.Error {
	return fault.New(fault.Invalid, format, args...)
}

func quote(s string) string { return strconv.Quote(shorten(s)) }

// shorten bounds what a message repeats of the client's text.
func shorten(s string) string {
	const longest = 100
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "..."
	}
	return s
}

// Encode returns the definition in its stored form, the same for equal definitions.
func (d Definition) Encode() ([]byte, error) { return json.Marshal(d) }

// Parse parses the stored form of the definition of that name and version. It ignores
// fields that a newer version of the engine has added.
func Parse(name string, version int64, stored []byte) (Definition, error) {
	d := Definition{Name: name, Version: version, Seen: ranking.Keep, Format: Records}
	if err := json.Unmarshal(stored, &d); err != nil {
		return d, fmt.Errorf("parse the definition of feed %q: %w", name, err)
	}
	return d, nil
}
