// Package rankers holds the simple methods that the field measures rankers against: rules of
// sequences, neighbours of items and of sessions, a linear model and a factorization. Compare judges
// them beside a strategy's own ranking, on the cases of package backtest. They are peers to be
// compared with, and the engine serves none of them: they may read all histories at once.
//
// A method learns from what users turned to before the cut, its training. An object's step is an
// instant that names it. Each method is a pure function of the training and of a user's history, so
// that a program of anyone else comes to the same figures; each type says its formula. Of a grid the
// cases of the tuning split choose the parameters (backtest.Cases.Split), and the untouched ones say
// what they are worth.
//
// The package does no I/O. It keeps nothing.
package rankers
