// Command image has Cloud Run build the image of a function from its zip in a bucket, and waits for it.
// It does what `gcloud run deploy --function` does before it deploys: a service that Terraform makes names the
// image, and does not build it. terraform/modules/image runs this command at each new zip.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/oauth2"
	"google.golang.org/api/artifactregistry/v1"
	"google.golang.org/api/cloudbuild/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/run/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

// image is one image of a function, and what it is built from.
type image struct {
	uri       string // REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME:TAG; the tag stands for all below
	source    string // gs://BUCKET/OBJECT, a zip
	target    string // the function's entry point
	base      string // Google's base image
	account   string // projects/PROJECT/serviceAccounts/EMAIL, as which Cloud Build builds
	variables map[string]string
}

func command() *cobra.Command {
	var i image
	wait := 30 * time.Minute
	cmd := &cobra.Command{
		Use:   "image --uri URI --source gs://BUCKET/OBJECT --target ENTRYPOINT --base IMAGE --account ACCOUNT",
		Short: "Have Cloud Run build the image of a function",
		Long: "Have Cloud Run build the image of a function with Google's buildpack, unless the repository has this image,\n" +
			"and wait for it. Credentials are Terraform's: GOOGLE_OAUTH_ACCESS_TOKEN, or the application default ones.",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			g, err := dial(ctx)
			if err != nil {
				return err
			}
			return g.provide(ctx, i)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&i.uri, "uri", "", "the image: REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME:TAG")
	flags.StringVar(&i.source, "source", "", "the zip: gs://BUCKET/OBJECT")
	flags.StringVar(&i.target, "target", "", "entry point of the function")
	flags.StringVar(&i.base, "base", "",
		"Google's base image: REGION-docker.pkg.dev/serverless-runtimes/STACK/runtimes/RUNTIME")
	flags.StringVar(&i.account, "account", "", "account of the build: projects/PROJECT/serviceAccounts/EMAIL")
	flags.StringToStringVar(&i.variables, "variable", nil, "NAME=VALUE in the environment of the build")
	flags.DurationVar(&wait, "wait", wait, "how long to wait for the build")
	for _, name := range []string{"uri", "source", "target", "base", "account"} {
		_ = cmd.MarkFlagRequired(name) // fails only for a flag that does not exist
	}
	return cmd
}

// google are the services of Google that a build needs.
type google struct {
	images *artifactregistry.Service
	run    *run.Service
	builds *cloudbuild.Service
	every  time.Duration // between two questions whether a build has ended, and between two tries to begin one
	tries  int           // of a build that Google refuses to begin
}

// settle is how long a build is tried again that Google refuses: the account that builds and its grants are seconds old
// at the first apply, and Google may take minutes to know them everywhere.
const settle = 3 * time.Minute

// dial connects to Google's services, or to those that the variables of Terraform's provider name.
func dial(ctx context.Context) (*google, error) {
	const every = 5 * time.Second
	g := &google{every: every, tries: int(settle / every)}
	var err [3]error
	g.images, err[0] = artifactregistry.NewService(ctx, options("GOOGLE_ARTIFACT_REGISTRY_CUSTOM_ENDPOINT", "v1/")...)
	g.run, err[1] = run.NewService(ctx, options("GOOGLE_CLOUD_RUN_V2_CUSTOM_ENDPOINT", "v2/")...)
	g.builds, err[2] = cloudbuild.NewService(ctx, options("GOOGLE_CLOUD_BUILD_CUSTOM_ENDPOINT", "v1/")...)
	if err := errors.Join(err[:]...); err != nil {
		return nil, fmt.Errorf("find credentials: %w", err)
	}
	return g, nil
}

// options are those of a client. The provider's endpoints end with the version, a client's do not.
func options(variable, version string) (list []option.ClientOption) {
	if endpoint := os.Getenv(variable); endpoint != "" {
		list = append(list, option.WithEndpoint(strings.TrimSuffix(endpoint, version)))
	}
	if token := os.Getenv("GOOGLE_OAUTH_ACCESS_TOKEN"); token != "" {
		list = append(list, option.WithTokenSource(oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token})))
	}
	return list
}

// provide builds an image that the repository does not have.
func (g *google) provide(ctx context.Context, i image) error {
	at, err := parse(i.uri)
	if err != nil {
		return err
	}
	bucket, object, ok := strings.Cut(strings.TrimPrefix(i.source, "gs://"), "/")
	if !ok || !strings.HasPrefix(i.source, "gs://") {
		return fmt.Errorf("--source %s: must be gs://BUCKET/OBJECT", i.source)
	}
	_, err = g.images.Projects.Locations.Repositories.Packages.Tags.Get(at.tag()).Context(ctx).Do()
	if missing := new(googleapi.Error); err == nil {
		return nil
	} else if !errors.As(err, &missing) || missing.Code != http.StatusNotFound {
		return fmt.Errorf("look for the image %s: %w", i.uri, err)
	}
	operation, err := g.submit(ctx, at.location(), &run.GoogleCloudRunV2SubmitBuildRequest{
		ImageUri: i.uri, ServiceAccount: i.account,
		StorageSource: &run.GoogleCloudRunV2StorageSource{Bucket: bucket, Object: object},
		BuildpackBuild: &run.GoogleCloudRunV2BuildpacksBuild{
			FunctionTarget: i.target, BaseImage: i.base, EnableAutomaticUpdates: true, EnvironmentVariables: i.variables,
		},
	})
	if err != nil {
		return fmt.Errorf("submit the build of %s: %w", i.uri, err)
	}
	return g.await(ctx, i, operation)
}

// submit begins a build and returns the name of its operation.
func (g *google) submit(
	ctx context.Context, location string, build *run.GoogleCloudRunV2SubmitBuildRequest,
) (string, error) {
	for try := 1; ; try++ {
		started, err := g.run.Projects.Locations.Builds.Submit(location, build).Context(ctx).Do()
		if err == nil {
			return started.BuildOperation.Name, nil
		}
		refused := new(googleapi.Error)
		again := errors.As(err, &refused) && (refused.Code == http.StatusForbidden || refused.Code == http.StatusNotFound)
		if !again || try >= g.tries {
			return "", err
		}
		select {
		case <-ctx.Done():
			return "", errors.Join(context.Cause(ctx), err)
		case <-time.After(g.every):
		}
	}
}

// await returns when a build has ended, with its fault if it failed.
func (g *google) await(ctx context.Context, i image, operation string) error {
	for {
		op, err := g.builds.Operations.Get(operation).Context(ctx).Do()
		if err != nil {
			return fmt.Errorf("ask for the build of %s: %w", i.uri, err)
		}
		if op.Done && op.Error != nil {
			return fmt.Errorf("the build of %s failed: %s; its log is in Cloud Build's history", i.uri, op.Error.Message)
		}
		if op.Done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the build of %s: %w", i.uri, context.Cause(ctx))
		case <-time.After(g.every):
		}
	}
}

// place is where an image is.
type place struct{ region, project, repository, name, label string }

func parse(uri string) (p place, err error) {
	rest, label, tagged := strings.Cut(uri, ":")
	parts := strings.Split(rest, "/")
	if !tagged || len(parts) != 4 || !strings.HasSuffix(parts[0], "-docker.pkg.dev") {
		return p, fmt.Errorf("--uri %s: must be REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME:TAG", uri)
	}
	return place{strings.TrimSuffix(parts[0], "-docker.pkg.dev"), parts[1], parts[2], parts[3], label}, nil
}

func (p place) location() string { return path.Join("projects", p.project, "locations", p.region) }

func (p place) tag() string {
	return path.Join(p.location(), "repositories", p.repository, "packages", p.name, "tags", p.label)
}
