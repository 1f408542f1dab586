// Command affinity is the one tool for Affinity, on a laptop and in production: it starts the whole engine locally, shows it at work on a
// simulated shop, loads history, reads profiles, sets strategies, makes apps and keys, puts dead letters back and measures.
//
// Apart from `up` and `demo`, which start an engine in this process (stack.go), and `app` and `replay`, which work on Firestore and
// Pub/Sub with the operator's own credentials, every command speaks HTTP to a running engine. The tool keeps nothing of its own.
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
