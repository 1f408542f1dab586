package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/affinityengine/affinity/shared/api"
)

// AuditLog returns a page of the changes of the app, the newest first. The key needs
// the permission admin.
func (c *Client) AuditLog(ctx context.Context, q api.AuditLogQuery) (api.AuditLog, error) {
	query := url.Values{}
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	for name, value := range map[string]string{"cursor": q.Cursor, "action": q.Action, "userToken": q.UserToken} {
		if value != "" {
			query.Set(name, value)
		}
	}
	path := "/1/audit-log"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var answer api.AuditLog
	err := c.call(ctx, always, http.MethodGet, path, nil, &answer)
	return answer, err
}
