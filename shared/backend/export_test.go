package backend

import "github.com/caarlos0/env/v11"

// Variables are what a function with these needs reads of its environment.
func (n Need) Variables() ([]env.FieldParams, error) { return env.GetFieldParams(n.settings()) }
