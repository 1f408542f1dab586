// Package clients says how Google's clients report their requests. It is apart from
// package telemetry, so that a function without such a client does not link their library.
package clients

import (
	"google.golang.org/api/option"

	"github.com/affinityengine/affinity/shared/telemetry"
)

// Options returns the options of a client. It records a span for each request if the
// process records spans. Otherwise it records nothing at all: what its handlers do for a
// request that nobody sees takes 4 to 6 % of a function's time.
func Options() []option.ClientOption {
	if telemetry.Recording() {
		return nil
	}
	return []option.ClientOption{option.WithTelemetryDisabled()}
}
