package auth_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/web/auth"
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
	a := auth.New(config.NewCached(newStore(t), 0), auth.Environment{Hosts: auth.Hosts{"zoo.example": "zoo"}}, nil)
	for _, test := range []struct {
		customer, app, key string
		want               error
	}{
		{"zoo", "zoo", "zoo", nil},
		{"zoo", "shop", "search", auth.ErrHost},
		{"zoo", "shop", "wrong", auth.ErrCredentials},
		{"zoo", "shop", "none", auth.ErrForbidden},
		{"-", "shop", "search", nil},
		{"-", "zoo", "zoo", auth.ErrHost},
		{"-", "zoo", "wrong", auth.ErrCredentials},
		{"", "shop", "search", auth.ErrNoCustomer},
		{"", "zoo", "zoo", auth.ErrNoCustomer},
		{"", "zoo", "wrong", auth.ErrCredentials},
		{"elsewhere", "shop", "search", auth.ErrHost},
	} {
		if _, err := a.Check(t.Context(), auth.Request{Customer: test.customer, App: test.app, Key: test.key}, auth.Search); !errors.Is(err, test.want) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
