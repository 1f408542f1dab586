package auth_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/config"
)

func TestHostsFromEnvironment(t *testing.T) {
	for text, want := range map[string]auth.Hosts{
		`{}`:                                nil,
		`{"API.Acme.example":"acme"}`:       {"api.acme.example": "acme"},
		`{"a.example":"a","b.example":"b"}`: {"a.example": "a", "b.example": "b"},
	} {
		var got auth.Hosts
		if err := got.UnmarshalText([]byte(text)); err != nil || len(got) != len(want) || len(want) > 0 && !cmp.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{``, `[]`, `{"a.example":1}`, `{"":"a"}`, `{"a.example":""}`, `{"a.example":"a,b"}`} {
		var got auth.Hosts
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%s was accepted as %v", text, got)
		}
	}
}

// A caller with a wrong key must not learn whose host it is.
func TestWrongKeyAtAnyHost(t *testing.T) {
	a := auth.New(config.NewCached(newStore(t), 0), auth.Environment{Hosts: auth.Hosts{"zoo.example": "zoo"}})
	for _, test := range []struct {
		host, app, key string
		want           error
	}{
		{"zoo.example", "zoo", "zoo", nil},
		{"zoo.example", "shop", "search", auth.ErrHost},
		{"zoo.example", "shop", "wrong", auth.ErrCredentials},
		{"zoo.example", "shop", "none", auth.ErrForbidden},
		{"other.example", "shop", "search", nil},
	} {
		if _, err := a.Check(t.Context(), auth.Request{Host: test.host, App: test.app, Key: test.key}, auth.Search); !errors.Is(err, test.want) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
