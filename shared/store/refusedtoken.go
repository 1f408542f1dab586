package store

import (
	"bytes"
	"encoding/json"
	"strings"
)

// ofUser reports whether a cell of a ring holds an event of a user. Of an event that
// is complete, the values of userToken and authenticatedUserToken decide. One that is
// kept in part, or that is not an object, is the user's if it mentions the token.
func ofUser(cell []byte, user string) bool {
	var r Refused
	if err := json.Unmarshal(cell, &r); err != nil {
		return mentions(string(cell), user)
	}
	if len(r.Event) == 0 {
		return false
	}
	var part string
	if json.Unmarshal(r.Event, &part) == nil {
		found, _ := tokenIs([]byte(part), user)
		return found || mentions(part, user)
	}
	found, object := tokenIs(r.Event, user)
	return found || !object && mentions(string(r.Event), user)
}

// RefusedTokens returns the tokens that a refused event may name, as a user or under an ID of a call. It is false if
// the event is kept in part, or is no object: then it may name anybody.
func RefusedTokens(event json.RawMessage) (tokens []string, whole bool) {
	if len(event) == 0 {
		return nil, true
	}
	if bytes.TrimLeft(event, " \t\r\n")[0] != '{' {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(event))
	decoder.UseNumber()
	err := eachNamed(decoder, "", func(token string) { tokens = append(tokens, token) })
	return tokens, err == nil
}

// naming are the keys, in lower case, whose values may be tokens.
var naming = map[string]bool{"usertoken": true, "authenticatedusertoken": true, "userid": true, "anonymousid": true,
	"previousid": true}

// eachNamed calls fn with the tokens in the next value of a text, which has a key, at any depth.
func eachNamed(decoder *json.Decoder, key string, fn func(token string)) error {
	value, err := decoder.Token()
	if err != nil {
		return err
	}
	switch v := value.(type) {
	case json.Delim:
		for decoder.More() {
			if v == '{' {
				name, err := decoder.Token()
				if err != nil {
					return err
				}
				key, _ = name.(string)
			}
			if err := eachNamed(decoder, key, fn); err != nil {
				return err
			}
		}
		_, err = decoder.Token()
		return err
	case string:
		if naming[strings.ToLower(key)] {
			fn(v)
		}
	case json.Number:
		if naming[strings.ToLower(key)] {
			fn(v.String())
		}
	}
	return nil
}

// tokenIs reports whether a JSON object has a user's token, and whether the text is
// an object as a whole. It reads a text that is cut up to its end.
func tokenIs(text []byte, user string) (found, object bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return false, false
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return found, false
		}
		var value any
		if err := decoder.Decode(&value); err != nil {
			return found, false
		}
		if key, _ := name.(string); !strings.EqualFold(key, "userToken") &&
			!strings.EqualFold(key, "authenticatedUserToken") {
			continue
		}
		switch token := value.(type) {
		case string:
			found = found || token == user
		case json.Number:
			found = found || token.String() == user
		}
	}
	end, err := decoder.Token()
	return found, err == nil && end == json.Delim('}')
}

// mentions reports whether a text has a user's token that is not part of a longer
// one. JSON may write a slash as \/.
func mentions(text, user string) bool {
	text = strings.ReplaceAll(text, `\/`, "/")
	for at := 0; ; {
		i := strings.Index(text[at:], user)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(user)
		if (start == 0 || !tokenByte(text[start-1])) && (end == len(text) || !tokenByte(text[end])) {
			return true
		}
		at = start + 1
	}
}

// tokenByte reports whether a user token may contain a byte.
func tokenByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("_=/+-", b) >= 0
}
