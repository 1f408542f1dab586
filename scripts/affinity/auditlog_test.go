package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/affinityengine/affinity/shared/app/auditlog"
)

// memoryLog keeps entries as the actions and subjects of changes.
type memoryLog struct {
	mu      sync.Mutex
	changes []string
}

func (l *memoryLog) BeginEntry(_ context.Context, app, _ string, entry []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var e auditlog.Entry
	if err := json.Unmarshal(entry, &e); err != nil {
		return err
	}
	l.changes = append(l.changes, fmt.Sprintf("%s %s %s %s", app, e.Actor, e.Action, e.Subject))
	return nil
}

func (l *memoryLog) EndEntry(context.Context, string, string, []byte) error { return nil }

func (l *memoryLog) AuditSalt(context.Context, string) ([]byte, error) { return nil, nil }

func (l *memoryLog) Close() error { return nil }
