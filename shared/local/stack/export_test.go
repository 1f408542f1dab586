package stack

import (
	"context"
	"net/http"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"

	"github.com/affinityengine/affinity/shared/local/disk"
)

// TasksAtOnce is how many tasks run at a time, beside purges.
const TasksAtOnce = tasksAtOnce

// OpenLibrary opens a client of the stack's Bigtable without the interceptors of package
// store.
func (s *Stack) OpenLibrary(ctx context.Context) (*bigtable.Client, error) {
	return bigtable.NewClientWithConfig(ctx, Project, Instance,
		bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}, DisableSession: true},
		append(s.local(s.place.Bigtable), option.WithTelemetryDisabled())...)
}

// Metrics is the handler of /metrics.
func (s *Stack) Metrics() http.Handler { return s.metrics }

// DatabaseSpaces are the spaces of a data folder that hold what the databases of a deployed
// engine hold.
var DatabaseSpaces = []disk.Space{spaceDocuments, spaceKeys}
