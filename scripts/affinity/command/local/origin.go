package local

import (
	"net/url"
	"strings"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// defaultPorts are those that browsers leave out, by the scheme of an origin.
var defaultPorts = map[string]string{"http": ":80", "https": ":443"}

// parseOrigins returns the origins of --origin as browsers send them.
func parseOrigins(texts []string) ([]string, error) {
	var origins []string
	for _, text := range texts {
		u, err := url.Parse(strings.ToLower(strings.TrimSuffix(text, "/")))
		if err != nil || defaultPorts[u.Scheme] == "" || u.Hostname() == "" || u.Scheme+"://"+u.Host != u.String() {
			return nil, cli.Usagef("--origin %q must be the scheme, host and port of a web page, such as "+
				"http://shop.test:3000", text)
		}
		u.Host = strings.TrimSuffix(u.Host, defaultPorts[u.Scheme])
		origins = append(origins, u.String())
	}
	return origins, nil
}
