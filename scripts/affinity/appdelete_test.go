package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/job/kinds/deletion"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/queue"
)

// On a local engine the command asks for the id, ends the app and waits until it is
// gone.
func TestAppDelete(t *testing.T) {
	s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond, LateWrites: time.Millisecond})
	t.Setenv(operator.Variable, s.Operator)
	app := func(stdin, line string) ran {
		return affinity(t, stdin, strings.Fields("app --url "+s.URL+" "+line)...)
	}
	app("", "create shop").wants(t, cli.ExitOK)
	app("demo\n", "delete shop").wants(t, cli.ExitFailed, "app shop is not deleted: its id was not typed")
	app("", "delete shop").wants(t, cli.ExitFailed, "app shop is not deleted")
	app("", "delete nowhere --yes").wants(t, cli.ExitFailed, "there is no such app")
	app("", "delete a,b").wants(t, cli.ExitUsage, `app id "a,b"`)
	app("", "key list shop").wants(t, cli.ExitOK)
	app("shop\n", "delete shop").wants(t, cli.ExitOK, "Type its id to go on", "its keys stop working within 5 seconds",
		"app shop is deleted with its ", "its id is found nowhere; it can be used again from 20")
	app("", "delete shop").wants(t, cli.ExitOK, "app shop is deleted with its ")
	app("", "create shop").wants(t, cli.ExitFailed, "app shop was deleted at 20", "its id can be used again from 20")
	app("", "key list shop").wants(t, cli.ExitFailed, "there is no such app")
	app("", "retention shop 3").wants(t, cli.ExitFailed, "there is no such app")
	if left, err := deletion.Left(t.Context(), s.Backends.Store.Rows, s.Backends.Below, "shop"); err != nil || len(left) != 0 {
		t.Errorf("refused commands have left %v (%v)", left, err)
	}
	app("", "delete shop --again").wants(t, cli.ExitOK, "app shop has ended", "app shop is deleted with its ")
	if listed := app("", "list"); strings.Contains(listed.out, "shop") {
		t.Errorf("the deleted app is listed:\n%s", listed.out)
	}
}

// tasks keep the tasks that a command creates.
type tasks []queue.Task

func (q *tasks) Create(_ context.Context, t queue.Task) error { *q = append(*q, t); return nil }

// On a deployed engine the command ends the app in Firestore and gives the job to the
// worker's queue. A worker runs it.
func TestAppDeleteDeployed(t *testing.T) {
	t.Parallel()
	store, jobs, created := config.NewMemory(), documents.NewMemory(), tasks{}
	app := onDeployedJobs(t, store, jobs, &created)
	app("create shop").wants(t, cli.ExitOK)
	app("delete shop --yes").wants(t, cli.ExitUsage, "--queue is required", "terraform output -raw tasks_queue")
	if _, err := store.App(t.Context(), "shop"); err != nil {
		t.Fatalf("the app has ended without a job: %v", err)
	}
	app("delete shop --yes --no-wait --queue q").wants(t, cli.ExitOK, "its keys stop working within 5 seconds")
	if len(created) != 1 || created[0].Path != "/deletion/plan" || created[0].Delay < 5*time.Second || created[0].Delay > 10*time.Second {
		t.Errorf("tasks %+v, want one that waits until every function knows", created)
	}
	app("delete shop --no-wait --queue q").wants(t, cli.ExitOK) // again, without a question
	if len(created) != 2 || created[1].Name != created[0].Name {
		t.Errorf("tasks %+v, want the same one twice", created)
	}
	app("create shop").wants(t, cli.ExitFailed, "app shop is being deleted")
}
