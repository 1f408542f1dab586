package command

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// defaultImpact is the personalizationImpact of a strategy file without one. The
// engine requires the field but its profiles do not depend on it.
const defaultImpact = 50

// ReadStrategy reads a strategy file and adds the personalizationImpact if it is
// missing. The engine checks everything else.
func (t *Tool) ReadStrategy(path string) (json.RawMessage, error) {
	text, added, err := t.CompleteStrategy(path)
	if added {
		fmt.Fprintf(t.Err, "the strategy %s has no personalizationImpact: it is sent with %d\n", path, defaultImpact)
	}
	return text, err
}

// CompleteStrategy reads a strategy file. added reports that the file has no
// personalizationImpact and text has the default one.
func (t *Tool) CompleteStrategy(path string) (text json.RawMessage, added bool, err error) {
	strategy, err := t.ReadFile(path)
	if err != nil {
		return nil, false, fmt.Errorf("read the strategy: %w", err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(strategy, &keys); err != nil {
		return nil, false, fmt.Errorf("the strategy %s is not a JSON object: %w", path, err)
	}
	if _, ok := keys["personalizationImpact"]; ok || keys == nil {
		return strategy, false, nil
	}
	keys["personalizationImpact"] = json.RawMessage(fmt.Sprint(defaultImpact))
	text, err = json.Marshal(keys)
	return text, true, err
}

// WriteStrategy writes a strategy to a file.
func WriteStrategy(path string, s api.Strategy) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the strategy: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the strategy: %w", err)
	}
	return nil
}

// SetStrategy calls set, which sets a strategy, and prints the warnings of the answer.
func (t *Tool) SetStrategy(ctx context.Context, set func(context.Context) error) error {
	var raw []byte
	if err := set(client.WithRawAnswer(ctx, &raw)); err != nil {
		return err
	}
	var answer api.Message
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("read the answer of the engine: %w", err)
	}
	t.Warn(answer.Warnings)
	return nil
}

// Warn prints warnings of the engine.
func (t *Tool) Warn(warnings []string) {
	for _, w := range warnings {
		fmt.Fprintf(t.Err, "warning: %s\n", cli.Printable(w))
	}
}
