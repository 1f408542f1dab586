package export

import (
	"google.golang.org/api/option"

	"github.com/affinityengine/affinity/shared/telemetry"
)

// ClientOptions returns the options of a client of Google Cloud, which is opened after Start. It
// records a span for each request if the process records spans. Otherwise it records nothing at
// all: what its handlers do for a request that nobody sees takes 4 to 6 % of a function's time.
func ClientOptions() []option.ClientOption {
	if telemetry.Recording() {
		return nil
	}
	return []option.ClientOption{option.WithTelemetryDisabled()}
}
