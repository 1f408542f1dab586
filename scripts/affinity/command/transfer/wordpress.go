package transfer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/wordpress"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// passwordVariable is the environment variable for --password.
const passwordVariable = "AFFINITY_WORDPRESS_PASSWORD"

type wordpressOptions struct {
	site, index, feed, state, user, password string
	perPage                                  int
	full, allowMassDeletion                  bool
	retryFor                                 time.Duration
}

// WordPress returns the command wordpress.
func WordPress(t *command.Tool) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "wordpress",
		Short: "Load the posts of a WordPress site, and keep them in step"}, wordpressSyncCommand(t))
}

func wordpressSyncCommand(t *command.Tool) *cobra.Command {
	o := wordpressOptions{}
	cmd := &cobra.Command{
		Use:   "sync --site URL",
		Short: "Bring an index in step with the published posts of a site",
		Long: "Load the published posts of a WordPress site through its REST API, with categories, tags, author and dates: new and\n" +
			"changed ones enter, and those that were deleted, unpublished or got a password leave. Run it again, for example by\n" +
			"cron: a run reads what changed, lists the IDs of all posts, and resumes one that was killed. Give it an index of its\n" +
			"own. What the index holds stands in a state file. If that is lost, --full clears the index and loads all posts.\n" +
			"Exit 1 if the run failed or would remove more than half of the posts, 3 if the engine refused a post; all others\n" +
			"are in step then. Requires a key with the permissions addObject, deleteObject and settings.",
		Example: "  affinity wordpress sync --site https://blog.example.com --feed blog\n" +
			"  " + passwordVariable + "='abcd efgh ijkl' affinity wordpress sync --site https://blog.example.com " +
			"--user reader --index blog",
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Require(cmd, "site", "the address of the site, such as https://blog.example.com"); err != nil {
				return err
			}
			o.password = cmp.Or(o.password, os.Getenv(passwordVariable))
			if err := o.check(); err != nil {
				return err
			}
			c, err := t.Client()
			if err != nil {
				return err
			}
			return syncWordPress(cmd.Context(), t, c, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.site, "site", "", "address of the site, without /wp-json")
	flags.StringVar(&o.index, "index", "posts", "index of the posts, which holds nothing else")
	flags.StringVar(&o.feed, "feed", "", "define this feed of the posts by publishedAt, in the format of "+
		"WordPress, if the app has none of the name")
	flags.StringVar(&o.state, "state", "", "file that says what the index holds (default: one in your "+
		"configuration directory)")
	flags.BoolVar(&o.full, "full", false, "read all posts, clear the index and store them")
	flags.BoolVar(&o.allowMassDeletion, "allow-mass-deletion", false, "remove also more than half of the posts")
	flags.StringVar(&o.user, "user", "", "WordPress user, if the API wants a login: one who sees what every reader sees")
	flags.StringVar(&o.password, "password", "",
		"application password of the user; $"+passwordVariable+" keeps it out of the list of processes")
	flags.IntVar(&o.perPage, "per-page", wordpress.MaxPerPage, "posts in one request: less for a slow site")
	flags.DurationVar(&o.retryFor, "retry-for", t.Retry.Total,
		"how long to repeat a request while the site or the engine is busy or away")
	t.JSONFlag(cmd, "print the summary as JSON")
	return cmd
}

// check refuses what no run could use.
func (o wordpressOptions) check() error {
	site, err := wordpress.ParseURL(o.site)
	switch {
	case err != nil:
		return cli.Usagef("--site: %v", err)
	case o.index == "":
		return cli.Usagef("--index must not be empty")
	case o.perPage < 1 || o.perPage > wordpress.MaxPerPage:
		return cli.Usagef("--per-page %d: must be from 1 to %d", o.perPage, wordpress.MaxPerPage)
	case o.retryFor <= 0:
		return cli.Usagef("--retry-for %s: must be more than 0", o.retryFor)
	case (o.user == "") != (o.password == ""):
		return cli.Usagef("--user and --password (or $%s) belong together", passwordVariable)
	case o.user != "" && site.Scheme == "http" && !httpapi.Loopback(site.Host):
		return cli.Usagef("--user: http would send the password to %s unencrypted: give the site as https://", site.Host)
	}
	return nil
}

func syncWordPress(ctx context.Context, t *command.Tool, c *client.Client, o wordpressOptions) error {
	progress := cli.NewProgress(t.Err)
	defer progress.Finish()
	warn := func(text string) {
		progress.Finish()
		fmt.Fprintln(t.Err, cli.Printable(text))
	}
	retry := t.Retry
	retry.Total = o.retryFor
	retry.Notify = func(err error, wait time.Duration) {
		warn(fmt.Sprintf("%v; trying again in %s", err, wait.Round(time.Millisecond)))
	}
	address, err := wordpress.ParseURL(o.site)
	if err != nil {
		return err
	}
	target := wordpress.Target{Site: address.String(), Engine: c.URL(), App: c.App(), Index: o.index}
	if o.state == "" {
		if o.state, err = defaultState(address, target); err != nil {
			return err
		}
	}
	if o.feed != "" { // first, so that the posts are listed by date as they enter
		if err := defineFeed(ctx, t, c.WithRetry(retry), o.feed, o.index); err != nil {
			return err
		}
	}
	begun := time.Now()
	site, err := wordpress.Open(ctx, wordpress.Config{URL: o.site, User: o.user, Password: o.password, Retry: retry})
	if err != nil {
		return err
	}
	sum, err := wordpress.Sync(ctx, wordpress.Options{
		Site: site, Engine: c.WithRetry(retry).Catalog(), Target: target, State: o.state,
		PerPage: o.perPage, Full: o.full, AllowMassDeletion: o.allowMassDeletion, Warn: warn,
		Progress: func(what string, done, total int) {
			progress.Set(fmt.Sprintf("%s: %d of %d", what, done, max(done, total)), float64(done)/float64(max(done, total, 1)))
		},
	})
	progress.Finish()
	if sum.Site != "" {
		err = errors.Join(err, printSync(t, sum, time.Since(begun)))
	}
	if err == nil && sum.Refused {
		return cli.WithCode(errors.New("the engine refused some posts: they are shown above; all others are in step"),
			command.ExitLines)
	}
	return err
}

// defineFeed defines a feed of the posts, unless the app has one of that name: its
// operator may have changed it since.
func defineFeed(ctx context.Context, t *command.Tool, c *client.Client, name, index string) error {
	feed, err := c.Feeds().Get(ctx, name)
	switch {
	case command.StatusOf(err) == http.StatusNotFound:
		request := api.FeedRequest{Index: index, Date: "publishedAt", Format: "wordpress"}
		if _, err := c.Feeds().Set(ctx, name, request); err != nil {
			return fmt.Errorf("define the feed %s: %w", name, err)
		}
		fmt.Fprintf(t.Err, "the feed %s is defined: GET /1/feeds/%s/latest and /suggested\n", cli.Printable(name),
			cli.Printable(name))
		return nil
	case err != nil:
		return fmt.Errorf("read the feed %s: %w", name, err)
	case feed.Index != index:
		return fmt.Errorf("the feed %s shows the index %s, not %s: name another one with --feed", name, feed.Index, index)
	}
	return nil
}

// defaultState is the path of the state file of a target. Its directory exists.
func defaultState(site *url.URL, target wordpress.Target) (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no place for the state file: %w: name one with --state", err)
	}
	dir = filepath.Join(dir, "affinity")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("no place for the state file: %w: name one with --state", err)
	}
	sum := sha256.Sum256([]byte(target.String()))
	name := regexp.MustCompile(`[^A-Za-z0-9.-]+`).ReplaceAllString(site.Hostname(), "-")
	return filepath.Join(dir, fmt.Sprintf("wordpress-%s-%s.json", name, hex.EncodeToString(sum[:6]))), nil
}

func printSync(t *command.Tool, sum wordpress.Summary, took time.Duration) error {
	if t.JSON {
		return cli.PrintJSON(t.Out, sum)
	}
	for _, reason := range slices.Sorted(maps.Keys(sum.LeftOut)) {
		fmt.Fprintf(t.Err, "left out, %s: %s%s\n", reason, cli.Count(len(sum.LeftOut[reason]), "post"),
			some(sum.LeftOut[reason]))
	}
	if n := len(sum.WithoutWordPress); n > 0 {
		fmt.Fprintf(t.Err, "too long for the WordPress form, which feeds of format=wordpress need: %s%s\n",
			cli.Count(n, "post"), some(sum.WithoutWordPress))
	}
	_, err := fmt.Fprintf(t.Out, "%s, index %s: %s listed, %d added, %d changed, %d removed, %d unchanged, in %.1f s\n",
		cli.Printable(sum.Site), cli.Printable(sum.Index), cli.Count(sum.Listed, "post"), sum.Added, sum.Changed,
		sum.Removed, sum.Unchanged, took.Seconds())
	return err
}

// some names the first of many IDs.
func some(ids []int64) string {
	const shown = 10
	text := ""
	for _, id := range ids[:min(shown, len(ids))] {
		text += fmt.Sprintf(" %d", id)
	}
	if len(ids) > shown {
		text += " ..."
	}
	return " (" + text[1:] + ")"
}
