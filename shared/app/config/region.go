package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Region is a region in which apps may live: what it has of its own.
//
// A region within another one shares everything with it but the tables: it has a set of tables
// of its own in the same Bigtable instance, for an app that is isolated from others.
type Region struct {
	Name string `json:"name"`
	// In is the region that this one is within, and from which it has all that follows.
	In string `json:"in,omitempty"`
	// Instance is the Bigtable instance.
	Instance string `json:"instance"`
	// Location is where the queues are, and Worker the address to which they send tasks.
	// Empty: those of the process.
	Location string `json:"location,omitempty"`
	Worker   string `json:"worker,omitempty"`
	// Draining says that the deployment will lose the region: no app is created there or moves
	// there, and those that live there stay until they move away.
	Draining bool `json:"draining,omitempty"`
}

// Regions are the regions of a deployment. Apps that name none live in the first one. A
// deployment without any has one Bigtable instance, and its apps name no region.
type Regions []Region

var locationForm = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

// UnmarshalText decodes the form that the deployment sets: a JSON array of regions.
func (r *Regions) UnmarshalText(text []byte) error {
	var given []Region
	if err := json.Unmarshal(text, &given); err != nil {
		return fmt.Errorf("regions: want a JSON array of objects with name and instance: %w", err)
	}
	seen := map[string]bool{}
	for i, one := range given {
		if one.In != "" {
			at := slices.IndexFunc(given[:i], func(r Region) bool { return r.Name == one.In && r.In == "" })
			if at < 0 {
				return fmt.Errorf("regions: %q is in %q, which is no region before it", one.Name, one.In)
			}
			one.Instance, one.Location, one.Worker = given[at].Instance, given[at].Location, given[at].Worker
			one.Draining = given[at].Draining
			given[i] = one
		}
		u, err := url.Parse(one.Worker)
		switch {
		case !ValidRegion(one.Name):
			return fmt.Errorf("regions: name %q: want 1 to 40 of a-z, 0-9 and -", one.Name)
		case seen[one.Name]:
			return fmt.Errorf("regions: %q is there twice", one.Name)
		case one.Instance == "":
			return fmt.Errorf("regions: %q has no Bigtable instance", one.Name)
		case one.Location != "" && !locationForm.MatchString(one.Location):
			return fmt.Errorf("regions: %q has the location %q", one.Name, one.Location)
		case one.Worker != "" && (err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != ""):
			return fmt.Errorf("regions: the worker of %q is %q, which is no URL without a query", one.Name, one.Worker)
		}
		seen[one.Name] = true
	}
	*r = given
	return nil
}

// Names returns the names in the order of the regions.
func (r Regions) Names() []string {
	names := make([]string, len(r))
	for i, one := range r {
		names[i] = one.Name
	}
	return names
}

// First returns the name of the region in which apps live that name none; empty if there
// are no regions.
func (r Regions) First() string {
	if len(r) == 0 {
		return ""
	}
	return r[0].Name
}

// Find returns the region of that name; an empty name is that of the first one.
func (r Regions) Find(name string) (Region, bool) {
	if name == "" {
		name = r.First()
	}
	i := slices.IndexFunc(r, func(one Region) bool { return one.Name == name })
	if i < 0 {
		return Region{}, false
	}
	return r[i], true
}

// Within returns the names of the regions within a region.
func (r Regions) Within(name string) []string {
	var names []string
	for _, one := range r {
		if one.In == name {
			names = append(names, one.Name)
		}
	}
	return names
}

// Whole returns the regions that are not within others.
func (r Regions) Whole() Regions {
	return slices.DeleteFunc(slices.Clone(r), func(one Region) bool { return one.In != "" })
}

// Suffix is appended to the names of the region's tables.
func (r Region) Suffix() string {
	if r.In == "" {
		return ""
	}
	return "." + r.Name
}

// Named returns the form of the name of a topic in a region: that of the first one is the
// name itself, and others end with a dot and the name of the region, because customers have names without dots.
func (r Regions) Named(name, region string) string {
	if one, ok := r.Find(region); ok && one.In != "" {
		region = one.In
	}
	if region == "" || region == r.First() {
		return name
	}
	return name + "." + region
}

// Check returns an error that names the regions if there is none of that name.
func (r Regions) Check(name string) error {
	if _, ok := r.Find(name); ok || name == "" {
		return nil
	}
	if len(r) == 0 {
		return fmt.Errorf("there is no region %q: this deployment has no regions", name)
	}
	return fmt.Errorf("there is no region %q: the regions are %s", name, strings.Join(r.Names(), ", "))
}

// Takes returns the error of Check, or one that says that the region takes no more apps.
func (r Regions) Takes(name string) error {
	if err := r.Check(name); err != nil {
		return err
	}
	if one, _ := r.Find(name); one.Draining {
		return fmt.Errorf("region %s is draining, so no app can be created there or move there", name)
	}
	return nil
}

// Place is that of the app, whose region is the first one if it names none.
func (r Regions) Place(a App) Place {
	if a.Region == "" {
		a.Region = r.First()
	}
	return a.Place()
}
