package taskqueue_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/queue/taskqueue"
)

// A task goes to the queues and the worker of its app's region, and to no others.
func TestRegionsHaveTheirOwnQueues(t *testing.T) {
	cfg := taskqueue.Config{
		Queue: queueName, Purges: "projects/p/locations/l/queues/purges", Refreshes: []string{"projects/p/locations/l/queues/refreshes-0"}, WorkerURL: "https://worker",
		Regions: config.Regions{{Name: "eu", Instance: "i"}, {Name: "us", Instance: "i-us", Location: "m", Worker: "https://worker-us"}},
		Where: func(_ context.Context, app string) (string, error) {
			if app == "unknown" {
				return "", errors.New("no configuration")
			}
			return map[string]string{"american": "us", "lost": "asia"}[app], nil
		},
	}
	for name, c := range map[string]struct {
		task    queue.Task
		answers []codes.Code
		want    string // the first worker and the queues; empty: an error
	}{
		"of the first region":      {queue.Task{App: "european"}, nil, "https://worker " + queueName},
		"of no app":                {queue.Task{}, nil, "https://worker " + queueName},
		"of another region":        {queue.Task{App: "american"}, nil, "https://worker-us projects/shop/locations/m/queues/work"},
		"a purge, no queue yet":    {queue.Task{App: "american", Short: true}, []codes.Code{codes.NotFound}, "https://worker-us projects/p/locations/m/queues/purges projects/shop/locations/m/queues/work"},
		"of a named region":        {queue.Task{App: "unknown", Region: "us"}, nil, "https://worker-us projects/shop/locations/m/queues/work"},
		"of a named lost region":   {queue.Task{App: "american", Region: "asia"}, nil, ""},
		"a refresh":                {queue.Task{App: "american", Refresh: true}, nil, "https://worker-us projects/p/locations/m/queues/refreshes-0"},
		"of a region that is gone": {queue.Task{App: "lost"}, nil, ""},
		"of an unknown region":     {queue.Task{App: "unknown"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server, addr := startScripted(t, c.answers...)
			c.task.Name, c.task.Path = "x", "/p"
			err := open(t, addr, cfg).Create(testContext(t), c.task)
			got := ""
			for i, r := range server.requests {
				if i == 0 {
					got = strings.TrimSuffix(r.GetTask().GetHttpRequest().GetUrl(), "/p")
				}
				got += " " + r.GetParent()
			}
			if (err != nil) != (c.want == "") || got != c.want {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
		})
	}
}
