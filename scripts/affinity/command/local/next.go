package local

import (
	"fmt"
	"io"
	"strings"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/web/clientscript"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// Products and an event to begin with.
const (
	firstProducts = `{"requests":[{"action":"addObject","body":{"objectID":"tee","brand":"Acme","color":"red"}},` +
		`{"action":"addObject","body":{"objectID":"mug","brand":"Bolt","color":"red"}},` +
		`{"action":"addObject","body":{"objectID":"cap","brand":"Acme","color":"blue"}}]}`
	firstEvent = `{"events":[{"eventType":"view","eventName":"Viewed","index":"products","userToken":"ann","objectIDs":["cap"]}]}`
)

// printNext says what to do with an engine that has just started: the API's pages, and the lines
// that lead from three products and one event to a profile and an order; how to import the user's
// own data, the script of web pages, and which pages may call the engine. It does not show a key of the user's own.
func printNext(out io.Writer, url string, o Options) {
	app := o.Apps[0]
	key := app.Key
	if key != demoKey {
		key = "KEY"
	}
	auth := fmt.Sprintf("-H 'x-algolia-application-id: %s' -H 'x-algolia-api-key: %s'", app.ID, key)
	flags := " --url " + url // a context may be current
	if app.ID != "demo" || key != demoKey {
		flags += fmt.Sprintf(" --app %s --key %s", app.ID, key)
	}
	affinity := command.CalledAs()
	fmt.Fprintf(out, "app and key:    %s, %s\n", cli.Printable(app.ID), key)
	fmt.Fprintf(out, "the API:        %s/docs\n", url)
	fmt.Fprintf(out, "three products: curl %s/1/indexes/products/batch %s \\\n  -d '%s'\n", url, auth, firstProducts)
	fmt.Fprintf(out, "an event:       curl %s/1/events %s \\\n  -d '%s'\n", url, auth, firstEvent)
	fmt.Fprintf(out, "a strategy:     %s strategy suggest --set%s\n", affinity, flags)
	fmt.Fprintf(out, "a profile:      %s profile ann%s\n", affinity, flags)
	fmt.Fprintf(out, "an order:       %s rank --user ann --index products mug tee cap%s\n", affinity, flags)
	fmt.Fprintf(out, "your own data:  %s import --suggest --objects OBJECTS EVENTS%s\n", affinity, flags)
	fmt.Fprintf(out, "in a page:      %s\n", clientscript.Tag(url))
	if httpapi.Loopback(o.Addr) {
		fmt.Fprintf(out, "from a page:    pages of %s may send events; --origin http://shop.test:3000 allows those of "+
			"another origin\n", strings.Join(append([]string{"localhost"}, o.Origins...), ", "))
	}
}
