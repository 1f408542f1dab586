package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/googleapis/gax-go/v2"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
)

// answerTime is how long the engine may take to say whether it knows a key.
const answerTime = 5 * time.Second

// awaitKeys returns once the engine takes keys of an app that were stored a moment ago, or says
// why nobody knows that. An instance that was asked for the app before it existed refuses its
// keys for as long as it keeps what it has read. So if one instance refuses a key, all have
// that time.
func (a *appTool) awaitKeys(ctx context.Context, s engine, id string, keys ...string) {
	stored, err := time.Now(), error(nil)
	for i := 0; i < len(keys) && err == nil; i++ {
		err = a.awaitKey(ctx, s, id, keys[i], stored)
	}
	if err != nil {
		fmt.Fprintf(a.Err, "not verified: %v. New keys work within %s\n", err, config.TTL)
	}
}

func (a *appTool) awaitKey(ctx context.Context, s engine, id, key string, stored time.Time) error {
	if s.url == "" {
		return errors.New("--url names no engine to ask for the keys")
	}
	if host := command.Unencrypted(s.url); host != "" {
		return fmt.Errorf("http would send the keys to %s unencrypted: use https", cli.Printable(host))
	}
	c, err := client.New(client.Config{URL: s.url, App: id, Key: key, Retry: client.NoRetry})
	if err != nil {
		return err
	}
	for refused := false; ; {
		old := time.Since(stored) >= a.ConfigTTL
		err := a.ask(ctx, c)
		switch {
		case err == nil && (!refused || old || s.local != nil):
			return nil
		case err != nil && (old || !errors.Is(err, errRefused)):
			return err
		}
		refused = refused || err != nil
		if err := gax.Sleep(ctx, a.WatchEvery); err != nil {
			return err
		}
	}
}

// errRefused says that the engine does not know a key.
var errRefused = errors.New("the engine refuses a key")

// ask returns nil if the engine knows the key of a client, whatever it permits.
func (a *appTool) ask(ctx context.Context, c *client.Client) error {
	short, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err := c.AppSettings(short, api.AppSettingsQuery{Limit: 1})
	var answer *api.Error
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.Status {
	case http.StatusForbidden:
		return nil
	case http.StatusUnauthorized:
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}
