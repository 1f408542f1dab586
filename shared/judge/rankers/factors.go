package rankers

import (
	"math/rand/v2"

	"github.com/affinityengine/affinity/shared/judge/backtest"
)

// factors are a factorization of the matrix of users and objects by alternating least squares (Hu, Koren
// and Volinsky, Collaborative filtering for implicit feedback datasets, ICDM 2008): an object that a user
// turned to counts 1 with the confidence 1 + alpha, all others 0 with the confidence 1. The vectors of
// objects begin at random by a fixed seed. That of a user of a case is computed from their history.
type factors struct {
	n       int // of a vector
	alpha   float64
	objects []float64 // vectors, one after the other
	square  []float64 // the sum of v v^T over them, with the regularization
}

const (
	rounds         = 10  // of computing all users, then all objects
	regularization = 0.1 // times the identity
)

func newFactors(t *training, n int, alpha float64) *factors {
	f := &factors{n: n, alpha: alpha, objects: make([]float64, t.objects*n)}
	random := rand.New(rand.NewPCG(1, 1))
	for i := range f.objects {
		f.objects[i] = random.NormFloat64() / 10
	}
	var users [][]int32
	turnedBy := make([][]int32, t.objects)
	for _, steps := range t.users {
		set := objectsOf(steps)
		for _, o := range set {
			turnedBy[o] = append(turnedBy[o], int32(len(users)))
		}
		users = append(users, set)
	}
	vectors := make([]float64, len(users)*n)
	for range rounds {
		f.solve(vectors, users, f.objects)
		f.solve(f.objects, turnedBy, vectors)
	}
	f.square = f.squareOf(f.objects)
	return f
}

// solve sets the vectors of all rows, given the entries of each row and the vectors of the other side.
func (f *factors) solve(rows []float64, entries [][]int32, others []float64) {
	square := f.squareOf(others)
	parallel(len(entries), func(i int) { copy(rows[i*f.n:], f.vector(square, entries[i], others)) })
}

// squareOf returns the sum of v v^T over vectors, with the regularization.
func (f *factors) squareOf(vectors []float64) []float64 {
	sum := make([]float64, f.n*f.n)
	for ; len(vectors) > 0; vectors = vectors[f.n:] {
		for j := range f.n {
			axpy(sum[j*f.n:][:f.n], vectors[j], vectors[:f.n])
		}
	}
	for j := range f.n {
		sum[j*f.n+j] += regularization
	}
	return sum
}

// vector returns the vector of a row: (square + alpha x sum of v v^T)^-1 x (1 + alpha) x sum of v, over its
// entries.
func (f *factors) vector(square []float64, entries []int32, others []float64) []float64 {
	x := make([]float64, f.n)
	if len(entries) == 0 {
		return x
	}
	a := append([]float64(nil), square...)
	for _, e := range entries {
		v := others[int(e)*f.n:][:f.n]
		for j := range f.n {
			axpy(a[j*f.n:][:f.n], f.alpha*v[j], v)
		}
		axpy(x, 1+f.alpha, v)
	}
	cholesky(a, f.n)
	for j := range f.n { // forward
		row := a[j*f.n:]
		x[j] = (x[j] - dot(row[:j], x[:j])) / row[j]
	}
	for j := f.n - 1; j >= 0; j-- { // and back
		for k := j + 1; k < f.n; k++ {
			x[j] -= a[k*f.n+j] * x[k]
		}
		x[j] /= a[j*f.n+j]
	}
	return x
}

// Score implements backtest.Order.
func (f *factors) Score(history []backtest.Step, scores []float64) {
	user := f.vector(f.square, objectsOf(history), f.objects)
	for o := range scores {
		scores[o] = dot(user, f.objects[o*f.n:][:f.n])
	}
}
