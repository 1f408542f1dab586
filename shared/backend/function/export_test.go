package function

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/caarlos0/env/v11"
)

// NewLazy returns the handler that Register registers.
func NewLazy[Settings any](log *slog.Logger, open Open[Settings]) http.Handler {
	return newLazy(log, open)
}

// Variables are those that the function with this entry point reads.
func Variables(name string) ([]env.FieldParams, error) {
	for _, r := range registrations {
		if r.name == name {
			return r.variables()
		}
	}
	return nil, fmt.Errorf("no function is registered as %q", name)
}
