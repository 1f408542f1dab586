package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/affinityengine/affinity/shared/api"
)

// BackupPath answers POST with a stream of package backup, for as long as that takes.
const BackupPath = "/local/backup"

// Backup asks for all that the engine keeps. Close what it returns.
func (c *Client) Backup(ctx context.Context) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.http.URL()+BackupPath, nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: transport{c.token}, CheckRedirect: stay}).Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask the engine for a backup: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	refusal := &api.Error{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxRequest)).Decode(refusal); err != nil {
		refusal.Message = http.StatusText(resp.StatusCode)
	}
	if refusal.Status = resp.StatusCode; refusal.Status == http.StatusConflict {
		return nil, errors.New(refusal.Message)
	}
	return nil, c.explain(refusal)
}
