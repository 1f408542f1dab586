package render

import (
	"bytes"
	"fmt"
	"io"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

// Backtest writes how well strategies and baselines did, what each strategy is
// worth first.
func Backtest(out io.Writer, b api.Backtest, colors *Palette) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s of %s; the cut is %s\n\n", colors.Bold(plural(int64(b.Cases), "case")),
		plural(int64(b.Candidates), "candidate"), timestamp(b.Cut))
	for _, r := range b.Results {
		if r.Strategy() {
			writeLifts(&text, cli.Printable(r.Name)+": ", b, r.Name, colors)
		}
	}
	writeCaveat(&text, b)
	fmt.Fprintln(&text)
	writeTables(&text, b, colors)
	writeLimits(&text)
	_, err := out.Write(text.Bytes())
	return err
}
