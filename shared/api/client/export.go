package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/affinityengine/affinity/shared/api"
)

// ErrCut says that an export ended before its last line.
var ErrCut = errors.New("the export is cut off: its last line does not say that it is complete")

// maxExportLine is larger than the profile or an event of a user.
const maxExportLine = 64 << 20

// Export writes all that the engine counts of a user to w, as lines of
// api.ExportLine, while they arrive. It returns the last line of a complete export,
// and ErrCut for another one: w then holds what has arrived. It does not repeat the
// request. Requires a key with the permission admin.
func (c *Client) Export(ctx context.Context, userToken string, w io.Writer) (api.ExportEnd, error) {
	path := "/1/export/" + url.PathEscape(userToken)
	body, err := c.stream(ctx, path)
	if err != nil {
		return api.ExportEnd{}, err
	}
	defer body.Close()
	return copyExport(body, w)
}

// stream returns the body of a successful answer, which the caller closes. The stream
// may last for minutes.
func (c *Client) stream(ctx context.Context, path string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("X-Algolia-Application-Id", c.app)
	request.Header.Set("X-Algolia-API-Key", c.key)
	patient := *c.http
	patient.Timeout = 0
	response, err := patient.Do(request)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	c.answered.Store(true)
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	return nil, fmt.Errorf("GET %s%s: %w", c.base, path, refusal(response, answer))
}

// copyExport copies lines and returns the end that they state, if it agrees with
// their number.
func copyExport(r io.Reader, w io.Writer) (api.ExportEnd, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxExportLine)
	var seen api.ExportEnd
	var last api.ExportLine
	for lines.Scan() {
		text := lines.Bytes()
		if _, err := w.Write(append(text[:len(text):len(text)], '\n')); err != nil {
			return seen, fmt.Errorf("write the export: %w", err)
		}
		last = api.ExportLine{}
		switch {
		case bytes.HasPrefix(text, []byte(`{"exportedEvent":`)):
			seen.Events++
		case bytes.HasPrefix(text, []byte(`{"exportedFault":`)):
			seen.Faults++
		case bytes.HasPrefix(text, []byte(`{"export`)):
			if err := json.Unmarshal(text, &last); err != nil {
				return seen, fmt.Errorf("%w: %w", ErrCut, err) // half a line
			}
		}
	}
	switch {
	case lines.Err() != nil:
		return seen, fmt.Errorf("%w: %w", ErrCut, lines.Err())
	case last.Cut != nil:
		return seen, fmt.Errorf("%w: %s", ErrCut, last.Cut.Message)
	case last.End == nil || *last.End != seen:
		return seen, ErrCut
	}
	return seen, nil
}
