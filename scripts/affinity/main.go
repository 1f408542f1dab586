// Command affinity is the command line tool of Affinity, on a laptop and in
// production. It starts the whole engine locally, shows it with a simulated shop,
// imports history, reads profiles, sets strategies, creates apps and keys, replays
// dead letters and measures.
//
// `up`, `serve` and `demo` start an engine in this process. `app` and `replay` use Firestore
// and Pub/Sub with the operator's credentials. Every other command speaks HTTP to a
// running engine.
//
// This package makes the command line, and holds the commands about the tool itself:
// context, version and completion. The other commands are in the packages below
// command, one a theme: they hold flags and calls. What the commands do is in the
// packages importer, wordpress, algolia, load, deadletter, plan, render, shop and cli.
// The tool keeps no data but contexts, and the state file of `wordpress sync`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
