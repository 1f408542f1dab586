package segment

import "github.com/affinityengine/affinity/shared/strategy"

// Parse decodes a condition from the JSON value of "where". Every error is a
// *fault.Error that names the place, such as where.and[1].filter.
func Parse(where []byte) (Condition, error) { return Condition{}, nil }

// MarshalJSON writes the condition as Parse reads it.
func (c Condition) MarshalJSON() ([]byte, error) { return nil, nil }

// Compile prepares a condition for a strategy, whose aliases it applies. The error, if
// a half-life is not one of the strategy's, is a *fault.Error.
func (c Condition) Compile(s strategy.Strategy) (*Query, error) { return nil, nil }
