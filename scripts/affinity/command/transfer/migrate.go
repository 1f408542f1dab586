package transfer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/algolia"
	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/importer"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// Environment variables of an Algolia application. The first two have the names that
// Algolia's own command line tool reads.
const (
	algoliaAppVariable = "ALGOLIA_APPLICATION_ID"
	algoliaKeyVariable = "ALGOLIA_API_KEY"
	algoliaURLVariable = "ALGOLIA_URL"
)

// Migrate returns the command migrate.
func Migrate(t *command.Tool) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "migrate",
		Short: "Come from Algolia Personalization: copy the strategy and the objects, compare profiles"},
		migrateAlgoliaCommand(t), migrateCompareCommand(t))
}

// algoliaApp names an Algolia application. Its APIs are those that the engine speaks, so
// clients of the engine read them.
type algoliaApp struct {
	app, key, keyFile, region, url string
}

func (a *algoliaApp) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&a.app, "algolia-app", "", "id of the Algolia application; $"+algoliaAppVariable)
	flags.StringVar(&a.keyFile, "algolia-key-file", "", "file that holds the Algolia key; or $"+algoliaKeyVariable)
	flags.StringVar(&a.region, "region", "us", "region of the Algolia Personalization API: us or eu")
	flags.StringVar(&a.url, "algolia-url", "",
		"one address in place of those of Algolia's APIs, for a proxy or a test; $"+algoliaURLVariable)
}

// complete takes from the environment what no flag gives.
func (a *algoliaApp) complete() error {
	a.app, a.url = cmp.Or(a.app, os.Getenv(algoliaAppVariable)), cmp.Or(a.url, os.Getenv(algoliaURLVariable))
	if a.keyFile != "" {
		key, err := command.ReadKey(a.keyFile)
		if err != nil {
			return err
		}
		a.key = key
	}
	a.key = cmp.Or(a.key, os.Getenv(algoliaKeyVariable))
	switch {
	case a.app == "":
		return cli.Usagef("--algolia-app is required: the id of the Algolia application, or $%s", algoliaAppVariable)
	case a.key == "":
		return cli.Usagef("the key of the Algolia application is missing: set $%s or --algolia-key-file", algoliaKeyVariable)
	case command.Unencrypted(a.url) != "":
		return cli.Usagef("--algolia-url %s: http would send the key unencrypted: use https", a.url)
	case a.region != "us" && a.region != "eu":
		return cli.Usagef("--region %q: must be us or eu", a.region)
	}
	return nil
}

// ofAlgolia is the error of a request to Algolia. It is no error of the engine, about
// which the tool gives advice.
func ofAlgolia(what string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%s: %v", what, err)
}

// personalization is a client of Algolia's Personalization API.
func (a *algoliaApp) personalization(t *command.Tool) (*client.Client, error) {
	return a.client(t, "https://personalization."+a.region+".algolia.com")
}

// search is a client of Algolia's Search API, by the host that serves reads.
func (a *algoliaApp) search(t *command.Tool) (*client.Client, error) {
	return a.client(t, "https://"+url.PathEscape(strings.ToLower(a.app))+"-dsn.algolia.net")
}

func (a *algoliaApp) client(t *command.Tool, address string) (*client.Client, error) {
	c, err := client.New(client.Config{URL: cmp.Or(a.url, address), App: a.app, Key: a.key})
	if err != nil {
		return nil, cli.Usagef("--algolia-app, --algolia-url: %v", err)
	}
	return t.Patient(c), nil
}

// migration copies what an Algolia application has into an app of the engine.
type migration struct {
	t                 *command.Tool
	from              algoliaApp
	to                *client.Client
	indexes           []string
	file, cursor      string
	dryRun, overwrite bool

	refused bool // the engine did not take some objects
}

func migrateAlgoliaCommand(t *command.Tool) *cobra.Command {
	m := migration{t: t}
	cmd := &cobra.Command{
		Use:   "algolia --index INDEX",
		Short: "Copy the strategy, the facets and the objects of an Algolia application",
		Long: "Copy from an Algolia application: the strategy of its Personalization API, and of each index attributesForFaceting and\n" +
			"the objects, by the Search API or from a file that `algolia objects browse INDEX` wrote. Nothing is changed at Algolia.\n" +
			"A strategy or facets that the app of the engine already has stay, unless --overwrite is given. Objects replace those\n" +
			"of the same objectID, so a second run changes nothing; objects that Algolia has lost since stay. If a run fails among\n" +
			"the objects, it says with which --cursor to go on. --dry-run reads, and prints what a run would do.\n" +
			"The key of Algolia needs the permissions recommendation, settings and browse, that of the engine recommendation, settings\n" +
			"and addObject. Exit 3 if the engine refused some objects; all others are stored then.",
		Example: "  " + algoliaAppVariable + "=YourApp " + algoliaKeyVariable +
			"=... affinity migrate algolia --index products --region eu --dry-run\n" +
			"  affinity migrate algolia --algolia-app YourApp --algolia-key-file algolia.key --index products --objects products.ndjson",
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := m.check(); err != nil {
				return err
			}
			c, err := t.Client()
			if err != nil {
				return err
			}
			m.to = t.Patient(c)
			return m.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&m.indexes, "index", nil, "index to copy; may be given several times")
	flags.StringVar(&m.file, "objects", "", "read the objects from this file instead: one JSON object per line, "+
		"plain or gzip, - for standard input")
	flags.StringVar(&m.cursor, "cursor", "", "go on with the objects at this cursor, which a failed run has printed")
	flags.BoolVar(&m.dryRun, "dry-run", false, "print what a run would do, and change nothing")
	flags.BoolVar(&m.overwrite, "overwrite", false, "replace a strategy and facets that the app of the engine has")
	m.from.flags(cmd)
	return cmd
}

func (m *migration) check() error {
	switch {
	case len(m.indexes) == 0:
		return cli.Usagef("--index is required: the index of Algolia to copy")
	case m.file != "" && len(m.indexes) > 1:
		return cli.Usagef("--objects is a file of one index: give one --index")
	case m.cursor != "" && (len(m.indexes) > 1 || m.file != ""):
		return cli.Usagef("--cursor is a place in one index: give one --index, and no --objects")
	}
	return m.from.complete()
}

func (m *migration) run(ctx context.Context) error {
	if err := m.strategy(ctx); err != nil {
		return err
	}
	search, err := m.from.search(m.t)
	if err != nil {
		return err
	}
	for _, index := range m.indexes {
		if err := m.facets(ctx, search, index); err != nil {
			return err
		}
		if err := m.objects(ctx, search, index); err != nil {
			return err
		}
	}
	if m.refused {
		return cli.WithCode(errors.New("the engine refused some objects: they are shown above; all others are stored"), command.ExitLines)
	}
	return nil
}

// say prints what a run does, or would do.
func (m *migration) say(format string, args ...any) {
	if m.dryRun {
		format = "would " + format
	}
	fmt.Fprintln(m.t.Out, cli.Printable(fmt.Sprintf(format, args...)))
}

// strategy copies the strategy.
func (m *migration) strategy(ctx context.Context) error {
	personalization, err := m.from.personalization(m.t)
	if err != nil {
		return err
	}
	theirs, err := personalization.Strategies().Get(ctx)
	if err != nil {
		return ofAlgolia("read Algolia's strategy in the region "+m.from.region, err)
	}
	ours, err := m.to.Strategies().Get(ctx)
	if err != nil {
		return fmt.Errorf("read the engine's strategy: %w", err)
	}
	empty := func(s api.Strategy) bool { return len(s.EventsScoring)+len(s.FacetsScoring) == 0 }
	switch {
	case empty(theirs):
		fmt.Fprintln(m.t.Out, "Algolia has no strategy: the engine's stays")
		return nil
	case slices.Equal(ours.EventsScoring, theirs.EventsScoring) && slices.Equal(ours.FacetsScoring, theirs.FacetsScoring):
		fmt.Fprintln(m.t.Out, "the engine has Algolia's strategy")
		return nil
	case !empty(ours) && !m.overwrite:
		fmt.Fprintln(m.t.Out, "the engine has another strategy, which stays: --overwrite replaces it")
		return nil
	}
	m.say("set the strategy: %s, %s, personalizationImpact %d", cli.Count(len(theirs.EventsScoring), "event"),
		cli.Count(len(theirs.FacetsScoring), "facet"), theirs.PersonalizationImpact)
	if m.dryRun {
		return nil
	}
	if err := m.to.Strategies().Set(ctx, theirs); err != nil {
		return fmt.Errorf("set the strategy: %w", err)
	}
	return nil
}

// facets copies attributesForFaceting.
func (m *migration) facets(ctx context.Context, search *client.Client, index string) error {
	theirs, err := search.Catalog().Settings(ctx, index)
	if err != nil {
		return ofAlgolia("read Algolia's settings of "+index, err)
	}
	ours, err := m.to.Catalog().Settings(ctx, index)
	if err != nil {
		return fmt.Errorf("read the engine's settings of %s: %w", index, err)
	}
	switch {
	case len(theirs.AttributesForFaceting) == 0:
		fmt.Fprintf(m.t.Out, "%s has no attributesForFaceting at Algolia: the engine's stay\n", cli.Printable(index))
		return nil
	case slices.Equal(ours.AttributesForFaceting, theirs.AttributesForFaceting):
		fmt.Fprintf(m.t.Out, "%s has Algolia's attributesForFaceting\n", cli.Printable(index))
		return nil
	case len(ours.AttributesForFaceting) > 0 && !m.overwrite:
		fmt.Fprintf(m.t.Out, "%s has other attributesForFaceting, which stay: --overwrite replaces them\n",
			cli.Printable(index))
		return nil
	}
	m.say("set attributesForFaceting of %s: %s", index, strings.Join(theirs.AttributesForFaceting, ", "))
	if m.dryRun {
		return nil
	}
	if _, err := m.to.Catalog().SetSettings(ctx, index,
		api.Settings{AttributesForFaceting: theirs.AttributesForFaceting}); err != nil {
		return fmt.Errorf("set attributesForFaceting of %s: %w", index, err)
	}
	return nil
}

// objects copies the objects of an index, from the file or page by page.
func (m *migration) objects(ctx context.Context, search *client.Client, index string) error {
	if m.file != "" {
		return m.objectsOfFile(ctx, index)
	}
	im := importer.New(m.to, m.t.Retry, m.t.Err)
	stored, cursor := 0, m.cursor
	for number := 1; ; number++ {
		p, err := algolia.Browse(ctx, search, index, cursor, m.dryRun)
		if err != nil {
			return fmt.Errorf("%w%s", ofAlgolia("read Algolia's objects of "+index, err), resume(cursor))
		}
		if m.dryRun {
			m.say("store %s of %s", cli.Count(p.Count, "object"), index)
			return nil
		}
		name := fmt.Sprintf("page %d of %s", number, index)
		n, err := im.Objects(ctx, importer.NewSource(name, bytes.NewReader(p.Lines()), -1), index)
		if stored += n.Stored; err != nil {
			return fmt.Errorf("store the objects of %s: %w%s", index, err, resume(cursor))
		}
		if cursor = p.Cursor; cursor == "" {
			break
		}
	}
	return m.stored(im, stored, index)
}

// resume says how to go on after a failure.
func resume(cursor string) string {
	if cursor == "" {
		return ""
	}
	return fmt.Sprintf("; what came before is stored: go on with --cursor '%s'", cursor)
}

func (m *migration) objectsOfFile(ctx context.Context, index string) error {
	if m.dryRun {
		m.say("store the objects of %s in %s", m.file, index)
		return nil
	}
	im := importer.New(m.to, m.t.Retry, m.t.Err)
	n, err := sendObjects(ctx, m.t, im, m.file, importer.ObjectForm{}, index)
	if err != nil {
		return err
	}
	return m.stored(im, n.Stored, index)
}

func (m *migration) stored(im *importer.Importer, n int, index string) error {
	m.refused = m.refused || im.BadLines() != nil
	_, err := fmt.Fprintf(m.t.Out, "%s: stored %s\n", cli.Printable(index), cli.Count(n, "object"))
	return err
}
