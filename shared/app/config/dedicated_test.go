package config_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
)

func TestDedicated(t *testing.T) {
	var d config.Dedicated
	if err := d.UnmarshalText([]byte(`{"Acme_1":"acme"}`)); err != nil {
		t.Fatal(err)
	}
	if name, own := d.Named("events", "Acme_1"); name != "events-acme" || !own {
		t.Errorf("topic %s, own %t, want events-acme", name, own)
	}
	for _, app := range []string{"acme", "", "Acme_1 "} {
		if name, own := d.Named("events", app); own {
			t.Errorf("app %q has its own %s", app, name)
		}
	}
	for _, text := range []string{``, `[]`, `{"a,b":"acme"}`, `{"a":""}`, `{"a":"b/c"}`, `{"":"acme"}`, `{"a":"Acme"}`, `{"a":1}`} {
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
	if _, own := d.Named("events", "Acme_1"); !own {
		t.Error("a text that is refused changed the apps")
	}
}
