package command

import (
	"os"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/operator"
)

// OperatorClient returns a client of the engine at --url as its operator.
func OperatorClient(t *Tool) (*operator.Client, error) {
	token := os.Getenv(operator.Variable)
	if token == "" {
		return nil, cli.Usagef("for an engine of `affinity up` set %s to the operator's token that it printed; for a deployed engine give --project",
			operator.Variable)
	}
	c, err := operator.NewClient(t.URL, token)
	if err != nil {
		return nil, cli.Usagef("%v", err)
	}
	return c, nil
}
