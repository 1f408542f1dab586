package config

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// Dedicated names the customers whose events and tasks have a topic, queues and
// processes of their own, by their app. The names of these topics and queues end
// with a hyphen and the customer's name.
//
// Where an app's events and tasks go depends on the app alone, not on the function
// that sends them: functions that serve all apps, such as imports and the nightly
// round, send them to the same places. No profile depends on the place.
type Dedicated map[string]string

var customerName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,14}$`)

// UnmarshalText decodes the form that the deployment sets: a JSON object of app id
// and customer's name.
func (d *Dedicated) UnmarshalText(text []byte) error {
	var given map[string]string
	if err := json.Unmarshal(text, &given); err != nil {
		return fmt.Errorf("dedicated apps: want a JSON object of app id and customer's name: %w", err)
	}
	for app, name := range given {
		if !ValidAppID(app) || !customerName.MatchString(name) {
			return fmt.Errorf("dedicated apps: app %q of %q: want an app id and 1 to 15 lower-case letters, digits and hyphens", app, name)
		}
	}
	*d = given
	return nil
}

// Named returns the app's own form of the name of a topic or queue, or false if the
// app shares those of the others.
func (d Dedicated) Named(name, app string) (string, bool) {
	customer, ok := d[app]
	return name + "-" + customer, ok
}
