package local

import (
	"fmt"
	"io"
	"strings"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/web/clientscript"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// printNext says what to do with an engine that has just started: the API's pages, an event
// and a profile by curl, the same by command, the script of web pages, and which pages may call it. It does not show a
// key of the user's own.
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
	fmt.Fprintf(out, "app and key:    %s, %s\n", cli.Printable(app.ID), key)
	fmt.Fprintf(out, "the API:        %s/docs\n", url)
	fmt.Fprintf(out, "send an event:  curl %s/1/events %s \\\n"+
		"                  -d "+
		"'{\"events\":[{\"eventType\":\"view\",\"eventName\":\"Viewed\",\"index\":\"products\",\"userToken\":\"ann\",\"filters\":[\"brand:Acme\"]}]}'\n", url, auth)
	fmt.Fprintf(out, "by command:     affinity strategy set FILE%s; affinity import FILE%s; affinity profile ann%s\n", flags, flags, flags)
	fmt.Fprintf(out, "in a page:      %s\n", clientscript.Tag(url))
	if httpapi.Loopback(o.Addr) {
		fmt.Fprintf(out, "from a page:    pages of %s may send events; --origin http://shop.test:3000 allows those of "+
			"another origin\n", strings.Join(append([]string{"localhost"}, o.Origins...), ", "))
	}
}
