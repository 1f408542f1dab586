package stack

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/affinityengine/affinity/functions/admin"
	"github.com/affinityengine/affinity/functions/catalog"
	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/functions/process"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/functions/segments"
	"github.com/affinityengine/affinity/functions/strategies"
	"github.com/affinityengine/affinity/functions/worker"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/backend/jobrunner"
	"github.com/affinityengine/affinity/shared/backend/jobs"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/intake/recent"
	"github.com/affinityengine/affinity/shared/intake/refused"
	"github.com/affinityengine/affinity/shared/intake/warehouse/outbox"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/deletion"
	"github.com/affinityengine/affinity/shared/job/tasks/refresh"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/queue/pubsub"
	"github.com/affinityengine/affinity/shared/serve/page"
	"github.com/affinityengine/affinity/shared/serve/ranker"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// Backends are the backends of all functions of the stack. Its methods return those
// of one function.
type Backends struct {
	backend.Base
	jobs.Jobs
	JobStore func(collection job.Collection) job.Jobs
	// Below are the documents below those of apps.
	Below     deletion.Documents
	Deletions *deletion.Runner
	// Auth is the authenticator of functions that take no secured keys, AuthSecured of
	// those that do.
	Auth, AuthSecured *auth.Authenticator
	// Cipher encrypts the texts of parents.
	Cipher   config.Cipher
	Bus      *pubsub.Bus
	Queue    queue.Queue
	Enricher *enrich.Enricher
	Profiles *profile.Engine
	Orderer  *ranker.Orderer
	Pages    *page.Reader
	Refused  *refused.Recorder
	// RefusedLinks collects what Profiles refuses.
	RefusedLinks *refused.Links
	Sampled      *recent.Recorder
	// Warehouse publishes rows for analysts; nil: none.
	Warehouse *outbox.Outbox
	// PackWindow is that of ingest.
	PackWindow time.Duration
}

func newBackends(base backend.Base, cipher config.Cipher, o Options, messages messaging,
	tasks queue.Queue) *Backends {
	keys := func(c *config.Cached) *auth.Authenticator {
		return auth.New(c, auth.Environment{Hosts: o.Hosts, Forwarded: o.Forwarded}, base.Usage.Key)
	}
	b := &Backends{
		Base: base, Below: config.Documents{Store: base.Documents, Keys: base.Keys}, Auth: keys(base.CachedConfig),
		AuthSecured: keys(base.CachedConfig.WithCipher(cipher)), Cipher: cipher,
		Bus: messages.bus, Queue: tasks, PackWindow: cmp.Or(o.PackWindow, bus.DefaultWindow),
		Profiles: profile.New(base.Store, base.Config, base.CachedConfig, base.Now, base.Log),
		Refused:  refused.New(base.Buffered(), base.Now, base.Log),

		RefusedLinks: refused.NewLinks(base.Buffered(), base.Usage, base.Now, base.Log),
	}
	profile.IdentitiesOf(b.Profiles).SetRefused(b.RefusedLinks.Record)
	b.Warehouse = outbox.Over(messages.warehouse, profile.ResidentsOf(b.Profiles), base.Now, base.Log)
	if watch := o.Watch.Topics; watch != nil && messages.warehouse != nil {
		b.Warehouse = outbox.Over(watch(messages.warehouse), profile.ResidentsOf(b.Profiles), base.Now, base.Log)
	}
	b.Sampled = recent.New(base.Buffered(), b.Profiles.StatesOf, base.Now, base.Log)
	refreshes := refresh.New(tasks, base.Now, base.Log)
	refreshes.Each(b.Metrics.Watch)
	b.Profiles.SetLater(refreshes.Enqueue)
	b.Orderer = ranker.New(base.Store, base.CachedConfig, b.Profiles, base.Now, base.Log)
	b.Pages = page.New(base.Store.Catalog, base.CachedConfig, b.Orderer, base.Now, base.Log)
	b.Profiles.Counters().Each(b.Metrics.Watch)
	profile.ResidentsOf(b.Profiles).Each(b.Metrics.Watch)
	b.Enricher = enrich.New(base.Store.Catalog, base.CachedConfig)
	b.JobStore = func(c job.Collection) job.Jobs { return job.Detailed(job.In(base.Documents, c), base.Store.Jobs, c) }
	runner := func(c job.Collection) job.Runner { return jobrunner.Open(base, tasks, o.Recompute, c) }
	b.Deletions = deletion.New(runner(deletion.Collection), base.Config, base.Store.Rows,
		outbox.Forgetting{Documents: b.Below, Outbox: b.Warehouse},
		cmp.Or(o.LateWrites, lateWrites))
	b.Jobs = jobs.Open(base, tasks, o.Recompute, b.Profiles, messages.bus)
	if o.MoreJobs != nil {
		b.More = o.MoreJobs(runner)
	}
	return b
}

// lateWrites is longer than a request takes on one machine.
const lateWrites = 30 * time.Second

// resume enqueues the tasks that unfinished jobs wait for.
func (b *Backends) resume(ctx context.Context) error {
	homes, err := b.Config.Homes(ctx)
	faults := []error{err}
	for _, home := range homes {
		kinds := b.Kinds()
		if home.Deleted {
			kinds = []job.Kind{b.Deletions}
		}
		faults = append(faults, job.Resume(ctx, home.App, kinds...))
	}
	return errors.Join(faults...)
}

// flush writes what functions keep in memory, as they do when their process ends.
func (b *Backends) flush() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(b.Refused.Flush(ctx), b.RefusedLinks.Flush(ctx), b.Sampled.Flush(ctx),
		profile.ExposuresOf(b.Profiles).Flush(ctx))
}

// ForIngest returns the backends of ingest.
func (b *Backends) ForIngest() ingest.Backends {
	return ingest.Backends{Base: b.Base, Auth: b.AuthSecured, Bus: b.Bus, Enricher: b.Enricher, Refused: b.Refused,
		PackWindow: b.PackWindow}
}

// ForImports returns the backends of imports.
func (b *Backends) ForImports() imports.Backends {
	return imports.Backends{Base: b.Base, Auth: b.Auth, Queue: b.Queue, Enricher: b.Enricher, Profiles: b.Profiles,
		Refused: b.Refused, Warehouse: b.Warehouse}
}

// ForCatalog returns the backends of catalog.
func (b *Backends) ForCatalog() catalog.Backends {
	return catalog.Backends{Base: b.Base, Auth: b.Auth, Queue: b.Queue}
}

// ForProfiles returns the backends of profiles.
func (b *Backends) ForProfiles() profiles.Backends {
	return profiles.Backends{Base: b.Base, Auth: b.AuthSecured, Queue: b.Queue, Profiles: b.Profiles}
}

// ForRank returns the backends of rank.
func (b *Backends) ForRank() rank.Backends {
	return rank.Backends{Base: b.Base, Auth: b.AuthSecured, Profiles: b.Profiles, Orderer: b.Orderer,
		Pages: b.Pages, DateRows: b.DateRows}
}

// ForStrategies returns the backends of strategies.
func (b *Backends) ForStrategies() strategies.Backends {
	return strategies.Backends{Base: b.Base, Auth: b.Auth, Profiles: b.Profiles, Recompute: b.Recompute}
}

// ForAdmin returns the backends of admin.
func (b *Backends) ForAdmin() admin.Backends {
	return admin.Backends{Base: b.Base, Jobs: b.Jobs, Auth: b.Auth, Profiles: b.Profiles}
}

// ForSegments returns the backends of segments.
func (b *Backends) ForSegments() segments.Backends {
	return segments.Backends{Base: b.Base, Segmenting: b.Segmenting, Before: b.Before, Auth: b.Auth}
}

// ForProcess returns the backends of process.
func (b *Backends) ForProcess() process.Backends {
	return process.Backends{Base: b.Base, Bus: b.Bus, Enricher: b.Enricher, Profiles: b.Profiles,
		Refused: b.Refused, Sampled: b.Sampled, Warehouse: b.Warehouse}
}

// ForWorker returns the backends of worker.
func (b *Backends) ForWorker() worker.Backends {
	return worker.Backends{Base: b.Base, Jobs: b.Jobs, Deletions: b.Deletions, Queue: b.Queue, Profiles: b.Profiles,
		Warehouse: b.Warehouse}
}
