package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// requestTimeout is longer than any route takes to answer.
const requestTimeout = time.Minute

// Client calls a local engine as its operator.
type Client struct {
	http  *client.Client
	token string
}

// NewClient returns a client of the engine at an address of this machine. Any
// other address is refused, so that the token does not leave the machine.
func NewClient(engine, token string) (*Client, error) {
	if err := CheckToken(token); err != nil {
		return nil, err
	}
	if u, err := url.Parse(engine); err == nil && u.Host != "" && !httpapi.Loopback(u.Host) {
		return nil, fmt.Errorf("the operator's token is for an engine on this machine, not at %s: name it as "+
			"http://127.0.0.1:PORT, or give --project", u.Host)
	}
	// The transport replaces the app and its key.
	c, err := client.New(client.Config{
		URL: engine, App: "operator", Key: "operator", Retry: client.NoRetry,
		HTTPClient: &http.Client{Transport: transport{token}, Timeout: requestTimeout, CheckRedirect: stay},
	})
	if err != nil {
		return nil, err
	}
	return &Client{c, token}, nil
}

// stay follows no redirect: transport would send the token there.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// transport sends the operator's token in place of an app's credentials.
type transport struct{ token string }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Del("X-Algolia-Application-Id")
	r.Header.Del("X-Algolia-API-Key")
	r.Header.Set("Authorization", "Bearer "+t.token)
	return http.DefaultTransport.RoundTrip(r)
}

// Place asks for the services behind the engine.
func (c *Client) Place(ctx context.Context) (Place, error) {
	var place Place
	err := c.call(ctx, http.MethodGet, "/local", nil, &place)
	return place, err
}

// call sends a request and decodes the answer into answer.
func (c *Client) call(ctx context.Context, method, path string, body []byte, answer any) error {
	received, err := c.http.Do(ctx, method, path, body)
	var refusal *api.Error
	if errors.As(err, &refusal) {
		return c.explain(refusal)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(received, answer); err != nil {
		return fmt.Errorf("read the answer of %s %s%s, which is not what `affinity up` sends: %w", method,
			c.http.URL(), path, err)
	}
	return nil
}

// explain returns the error of a refused request.
func (c *Client) explain(refusal *api.Error) error {
	switch {
	case refusal.Status == http.StatusNotFound && refusal.Message == config.ErrNotFound.Error():
		return config.ErrNotFound
	case refusal.Status == http.StatusConflict:
		return config.ErrExists
	case refusal.Status == http.StatusUnauthorized:
		return fmt.Errorf("the engine at %s has another operator's token: set %s to the one that its `affinity up` "+
			"printed or was started with, or that is in the folder of its `affinity serve`",
			c.http.URL(), Variable)
	case refusal.Status == http.StatusNotFound:
		return fmt.Errorf("the engine at %s has no routes for its operator: it is not one of `affinity up` on this "+
			"machine (of `affinity serve` give its --admin address, for a deployed engine give --project)",
			c.http.URL())
	}
	return refusal
}
