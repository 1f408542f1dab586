package command

import (
	"os"

	"github.com/spf13/pflag"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/judge/price"
)

// PriceFlags are prices that a caller gives in place of the project's list.
type PriceFlags struct {
	prices []string
	file   string
}

// Add adds the flags.
func (f *PriceFlags) Add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.prices, "price", nil,
		"a price in US dollars as NAME=USD, such as bigtable_nodes=0.65; may be repeated")
	flags.StringVar(&f.file, "price-file", "", "a file with a line NAME=USD for each price; --price wins over it")
}

// List returns the list with the prices that were given. The error is one of usage.
func (f *PriceFlags) List() (price.Prices, error) {
	prices := price.List()
	if f.file != "" {
		text, err := os.ReadFile(f.file)
		if err != nil {
			return nil, cli.Usagef("--price-file: %v", err)
		}
		if err := prices.SetAll(string(text)); err != nil {
			return nil, cli.Usagef("--price-file %s, %v", f.file, err)
		}
	}
	for _, text := range f.prices {
		if err := prices.Set(text); err != nil {
			return nil, cli.Usagef("--price %v", err)
		}
	}
	return prices, nil
}
