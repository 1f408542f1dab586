package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// Polls begin quickly, to see what takes milliseconds, and end up sparing the engine.
const (
	pollFirst = 10 * time.Millisecond
	pollMost  = 200 * time.Millisecond
)

// poll asks until the answer is yes or an error, at most for within.
func poll(ctx context.Context, within time.Duration, ask func() (bool, error)) error {
	begun := time.Now()
	for wait := pollFirst; ; wait = min(wait*5/4, pollMost) {
		yes, err := ask()
		if yes || err != nil {
			return err
		}
		if time.Since(begun) > within {
			return fmt.Errorf("not there after %s", within)
		}
		if err := cli.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// quote makes text one word for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
