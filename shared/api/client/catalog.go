package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/affinityengine/affinity/shared/api"
)

func indexPath(index string) string { return "/1/indexes/" + url.PathEscape(index) }

// Batch applies actions to an index in their order, all or none. To add and
// update, the key needs the permission addObject; to delete and clear, it needs
// deleteObject.
//
// The request is repeated only if every object that it adds has an objectID.
func (c Catalog) Batch(ctx context.Context, index string, actions ...api.BatchAction) (api.BatchAnswer, error) {
	when := always
	if slices.ContainsFunc(actions, withoutID) {
		when = never
	}
	var answer api.BatchAnswer
	err := c.call(ctx, when, http.MethodPost, indexPath(index)+"/batch", api.BatchRequest{Requests: actions}, &answer)
	return answer, err
}

// withoutID reports whether an action adds an object without an objectID. The
// engine gives each such request another one.
func withoutID(a api.BatchAction) bool {
	if a.Action != api.ActionAddObject || a.ObjectID != nil {
		return false
	}
	var record map[string]any // a struct would take "OBJECTID" too, which the engine ignores
	return json.Unmarshal(a.Body, &record) == nil && record["objectID"] == nil
}

// Task returns the state of a task, which is always finished: batches and
// settings apply before they are answered. Requires a key with the permission addObject,
// deleteObject or settings.
func (c Catalog) Task(ctx context.Context, index string, task int64) (api.TaskAnswer, error) {
	var answer api.TaskAnswer
	err := c.call(ctx, always, http.MethodGet, indexPath(index)+"/task/"+strconv.FormatInt(task, 10), nil, &answer)
	return answer, err
}

// Get returns a record. If it does not exist, the error is an *api.Error
// with status 404. Requires a key with the permission addObject.
func (c Catalog) Get(ctx context.Context, index, objectID string) (json.RawMessage, error) {
	var answer json.RawMessage
	err := c.call(ctx, always, http.MethodGet, indexPath(index)+"/"+url.PathEscape(objectID), nil, &answer)
	return answer, err
}

// List lists the objects of an index. Requires a key with the permission addObject.
func (c Catalog) List(ctx context.Context, index string, q api.ObjectsQuery) (api.Objects, error) {
	values := url.Values{}
	for name, value := range map[string]string{"filter": q.Filter, "cursor": q.Cursor} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if q.Limit != 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	path := indexPath(index)
	if len(values) > 0 {
		path += "?" + values.Encode()
	}
	var answer api.Objects
	err := c.call(ctx, always, http.MethodGet, path, nil, &answer)
	return answer, err
}

// Delete removes a record, if it exists. Requires a key with the permission
// deleteObject.
func (c Catalog) Delete(ctx context.Context, index, objectID string) (api.DeletedObject, error) {
	var answer api.DeletedObject
	err := c.call(ctx, always, http.MethodDelete, indexPath(index)+"/"+url.PathEscape(objectID), nil, &answer)
	return answer, err
}

// Settings returns the settings of an index. Requires a key with the permission settings.
func (c Catalog) Settings(ctx context.Context, index string) (api.Settings, error) {
	var answer api.Settings
	err := c.call(ctx, always, http.MethodGet, indexPath(index)+"/settings", nil, &answer)
	return answer, err
}

// SetSettings sets the settings of an index. Events that come later get the
// filters of the new settings. Requires a key with the permission settings.
func (c Catalog) SetSettings(ctx context.Context, index string, s api.Settings) (api.SettingsAnswer, error) {
	var answer api.SettingsAnswer
	err := c.call(ctx, always, http.MethodPut, indexPath(index)+"/settings", s, &answer)
	return answer, err
}
