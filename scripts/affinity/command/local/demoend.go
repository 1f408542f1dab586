package local

import (
	"fmt"
	"strings"

	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/shop"
)

// farewell says what to click and what to type, at an engine that goes on. Commands name the engine
// by variables, because another context may be current.
func (d *demo) farewell() {
	if d.once {
		return
	}
	affinity, visitor := command.CalledAs(), shop.UserToken(shownPersonas[1], 0)
	auth := "-H 'x-algolia-application-id: " + d.c.App() + "' -H " + quote("x-algolia-api-key: "+d.key)
	event := `{"events":[{"eventType":"click","eventName":"Product Clicked","index":"` + shop.Index +
		`","userToken":"you","objectIDs":["` + d.shop.Objects()[0].ObjectID + `"]}]}`
	d.print("")
	d.print("%s  %s", d.colors.Bold("click"), d.console())
	d.print("       the console, with this link once within ten minutes, or later with app %s and its key:", d.c.App())
	d.print("       Overview: what rises    Users: %s, whose taste has changed", visitor)
	d.print("       Strategy: move a slider, see what it does to 200 people    Segments: who likes Littlebee")
	d.print("       Simulator: one page for two people    Jobs: was it better than best sellers?")
	d.print("")
	d.print("%s   export %s=%s %s=%s %s=%s", d.colors.Bold("type"), command.URLVariable, d.c.URL(), command.AppVariable,
		d.c.App(), command.KeyVariable, quote(d.key))
	for _, line := range []string{
		"profile " + visitor,
		"rank --user " + visitor + " --index " + shop.Index + " P106 P306 P406",
		"identity show " + shop.UserToken(eveningPersona, 1),
		"segment query --where 'brand:Littlebee > 10000' --limit 3",
		"tune --url " + d.c.URL() + " --index " + shop.Index + " --within categories.lvl0 --out tuned.json",
	} {
		d.print("       %s %s", affinity, line)
	}
	d.print("       curl '%s/1/events' %s -d '%s'", d.c.URL(), auth, event)
	d.print("       curl '%s/1/profiles/you' %s", d.c.URL(), auth)
	if !d.tour {
		d.print("       %s demo --tour --once --addr 127.0.0.1:0   prints profiles, a page and a search for two people",
			affinity)
	}
	d.print("")
	d.print("serving on %s until Ctrl-C", d.c.URL())
}

func (d *demo) print(format string, args ...any) { fmt.Fprintf(d.t.Out, format+"\n", args...) }

// quote makes text one word for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
