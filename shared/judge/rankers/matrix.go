package rankers

import (
	"math"
	"sync"
)

// block is the edge of the squares in which matrices are worked on, so that three of them lie in the
// cache of a core.
const block = 64

// invert replaces a symmetric positive definite matrix of n rows by its inverse: A = L L^T by
// Cholesky, then A^-1 = L^-T L^-1.
func invert(a []float64, n int) {
	cholesky(a, n)
	invertLower(a, n)
	// The lower triangle holds M = L^-1; the inverse is M^T M.
	out := make([]float64, n*n)
	parallel((n+block-1)/block, func(b int) {
		for i := b * block; i < min((b+1)*block, n); i++ {
			row := out[i*n:][:i+1]
			for k := i; k < n; k++ {
				axpy(row, a[k*n+i], a[k*n:][:i+1])
			}
		}
	})
	for i := range n {
		for j := range i + 1 {
			a[i*n+j], a[j*n+i] = out[i*n+j], out[i*n+j]
		}
	}
}

// cholesky replaces the lower triangle by L.
func cholesky(a []float64, n int) {
	for from := 0; from < n; from += block {
		to := min(from+block, n)
		for j := from; j < to; j++ { // the columns of the block, of its own rows
			row := a[j*n:]
			row[j] = math.Sqrt(row[j] - dot(row[from:j], row[from:j]))
			for i := j + 1; i < to; i++ {
				a[i*n+j] = (a[i*n+j] - dot(a[i*n+from:i*n+j], row[from:j])) / row[j]
			}
		}
		if to == n {
			return
		}
		parallel(n-to, func(i int) { // the rows below
			row := a[(to+i)*n:]
			for j := from; j < to; j++ {
				row[j] = (row[j] - dot(row[from:j], a[j*n+from:j*n+j])) / a[j*n+j]
			}
		})
		parallel(n-to, func(i int) { // what is left, less the block
			row := a[(to+i)*n:]
			for j := to; j <= to+i; j++ {
				row[j] -= dot(row[from:to], a[j*n+from:j*n+to])
			}
		})
	}
}

// invertLower replaces the lower triangle L by its inverse, row by row: row i of the inverse is
// (e_i - the sum over k < i of L[i][k] x row k of the inverse) / L[i][i].
func invertLower(a []float64, n int) {
	row := make([]float64, n)
	for i := range n {
		clear(row[:i+1])
		of := a[i*n:]
		for k := range i {
			axpy(row[:k+1], -of[k], a[k*n:][:k+1])
		}
		row[i] = 1
		diagonal := of[i]
		for j := range i + 1 {
			of[j] = row[j] / diagonal
		}
	}
}

func dot(a, b []float64) (sum float64) {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// axpy adds x times b to a.
func axpy(a []float64, x float64, b []float64) {
	b = b[:len(a)]
	for i := range a {
		a[i] += x * b[i]
	}
}

// parallel calls work with each number below n, in a few goroutines.
func parallel(n int, work func(i int)) {
	const lanes = 4
	var group sync.WaitGroup
	for lane := range lanes {
		group.Go(func() {
			for i := lane; i < n; i += lanes {
				work(i)
			}
		})
	}
	group.Wait()
}
