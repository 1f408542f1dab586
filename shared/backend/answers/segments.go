package answers

import (
	"errors"
	"net/http"

	"github.com/affinityengine/affinity/shared/serve/query"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// segmentRetry is how many seconds a client waits before it asks again for lists that
// are not ready.
const segmentRetry = "5"

// Segments answers an error of a query that is neither the client's fault nor one
// of the engine: segments are off, or their lists are not ready.
func Segments(w http.ResponseWriter, err error) error {
	if errors.Is(err, query.ErrOff) {
		return httpapi.Errorf(http.StatusConflict,
			"Segments are off for this app. Its operator switches them on: affinity app segments APP on")
	}
	if message, is := query.IsNotReady(err); is {
		w.Header().Set("Retry-After", segmentRetry)
		return httpapi.WriteMessage(w, http.StatusServiceUnavailable, message)
	}
	return err
}
