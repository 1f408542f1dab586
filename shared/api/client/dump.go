package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/affinityengine/affinity/shared/api"
)

// DumpPage writes a page of all that the app has to w, as lines of api.ExportLine: the
// first page for an empty cursor, else the one behind the cursor. It returns the page's
// last line, which has either the cursor of the next page or the end of the dump. It
// writes the whole page, or nothing if the engine does not answer with one. The key needs
// the permission admin.
func (c *Client) DumpPage(ctx context.Context, cursor string, w io.Writer) (api.ExportLine, error) {
	path := "/1/dump"
	if cursor != "" {
		path += "?cursor=" + url.QueryEscape(cursor)
	}
	page, err := c.DoAgain(ctx, http.MethodGet, path, nil)
	if err != nil {
		return api.ExportLine{}, err
	}
	text := bytes.TrimSuffix(page, []byte("\n"))
	var last api.ExportLine
	err = json.Unmarshal(text[bytes.LastIndexByte(text, '\n')+1:], &last)
	if err != nil || (last.Next == nil) == (last.End == nil) {
		return last, fmt.Errorf("GET %s%s: %w", c.base, path, ErrCut)
	}
	if _, err := w.Write(page); err != nil {
		return last, fmt.Errorf("write the dump: %w", err)
	}
	return last, nil
}
