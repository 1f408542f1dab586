package console

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

// command is a command of the operator, for people to copy.
type command struct{ What, Text string }

// maxAlike is how many bytes a command has that makes a key like another one: nobody copies a longer one.
const maxAlike = 600

// newKeys are commands that make keys, under names that no key has.
func newKeys(app api.AppSettings) []command {
	free := func(name string) string {
		for n, one := 2, name; ; n++ {
			if !slices.ContainsFunc(app.Keys, func(k api.AppKey) bool { return k.Name == one }) {
				return one
			}
			one = name + "-" + strconv.Itoa(n)
		}
	}
	add := "affinity app key add " + app.ID + " --name "
	return []command{
		{"For a web page: it sends events and does nothing else", add + free("web") + " --acl search --referers 'https://*.shop.example/*'"},
		{"For your server: it reads profiles, ranks and sets the strategy", add + free("server") + " --acl recommendation"},
		{"For a person who works in the console", add + free("person") + " --acl recommendation,admin,usage --valid-for 2160h"},
	}
}

// newAdmin is the command that makes the key which the page needs.
func newAdmin(app string) command {
	return command{"A key that may see the app and its keys", "affinity app key add " + app + " --name console --acl admin"}
}

// keyCommands are the commands about a key. same is how many keys have its name, and valid whether
// one of them is.
func keyCommands(app string, k keyCard, same int, valid bool) []command {
	var all []command
	if k.Name != "" && k.Newer == "" && valid {
		all = append(all, command{"Replace it: the old key ends after a day", "affinity app key rotate " + app + " " + k.Name})
	}
	remove := command{"Revoke it within five seconds", "affinity app key remove " + app + " " + k.ID}
	if same == 1 {
		remove.Text = "affinity app key remove " + app + " --name " + k.Name
	}
	all = append(all, remove)
	if text := alike(app, k); len(k.ACL) > 0 && len(text) <= maxAlike {
		all = append(all, command{"Make another one with the same permissions", text})
	}
	return all
}

// alike is the command that makes another key with what a key permits.
func alike(app string, k keyCard) string {
	var b strings.Builder
	b.WriteString("affinity app key add " + app + " --name NAME --acl " + shellArg(listed(k.ACL)))
	if len(k.Indexes) > 0 {
		b.WriteString(" --indexes " + shellArg(listed(k.Indexes)))
	}
	if len(k.Referers) > 0 {
		b.WriteString(" --referers " + shellArg(listed(k.Referers)))
	}
	if k.AddressRate > 0 {
		fmt.Fprintf(&b, " --per-address %d", k.AddressRate)
	}
	if k.Parent {
		b.WriteString(" --parent")
	}
	if k.ValidUntil != nil && k.Newer == "" { // an older key ends earlier than it was made for
		fmt.Fprintf(&b, " --valid-for %dh", max(1, int(k.ValidUntil.Sub(k.CreatedAt.Time)/time.Hour)))
	}
	return b.String()
}

// listed writes a list as a flag takes it: values with commas or quotes are quoted.
func listed(list []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(list) // a strings.Builder takes all
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}
