package terraform_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// unknown marks a price without a source in COSTS.md, and each cost that depends
// on such a price.
const unknown = "unknown"

// TestCosts computes the costs of the example in COSTS.md and compares them with
// the file's.
func TestCosts(t *testing.T) {
	text, err := os.ReadFile("COSTS.md")
	if err != nil {
		t.Fatal(err)
	}
	prices, lines, sum := readCosts(t, string(text))
	used := map[string]bool{}
	var total float64
	for _, line := range lines {
		price, there := prices[line.price]
		used[line.price] = true
		switch {
		case !there:
			t.Errorf("%s: the table of prices has no %s", line.what, line.price)
		case price == unknown:
			if line.dollars != unknown {
				t.Errorf("%s: the price %s is unknown, but the cost is %s", line.what, line.price, line.dollars)
			}
		default:
			cost := math.Round(100*line.quantity*number(t, price)) / 100
			total += cost
			if want := strconv.FormatFloat(cost, 'f', 2, 64); line.dollars != want {
				t.Errorf("%s: got a cost of %s, want %s", line.what, line.dollars, want)
			}
		}
	}
	if want := strconv.FormatFloat(total, 'f', 2, 64); sum != want {
		t.Errorf("got a sum of %s, want %s", sum, want)
	}
	for name := range prices {
		if !used[name] {
			t.Errorf("no line of the example uses the price %s", name)
		}
	}
	if len(lines) < 10 || len(prices) < 10 {
		t.Errorf("read only %d lines and %d prices, so the tables have another form", len(lines), len(prices))
	}
}

type costLine struct {
	what, price, dollars string
	quantity             float64
}

var (
	priceRow = regexp.MustCompile("^\\| `([a-z_]+)` \\| ([0-9.]+|unknown) \\| [^|]+ \\| https://cloud\\.google\\.com/[a-z/-]+ \\| [0-9]{4}-[0-9]{2}-[0-9]{2} \\| [^|]*\\|$")
	costRow  = regexp.MustCompile("^\\| ([^|]+) \\| ([0-9.]+) \\| `([a-z_]+)` \\| ([0-9.]+|unknown) \\|$")
	sumRow   = regexp.MustCompile(`^\| \*\*.+\*\* \| \| \| \*\*([0-9.]+)\*\* \|$`)
)

// readCosts reads the rows of both tables: the prices by name, the lines of the
// example, and its sum.
func readCosts(t *testing.T, text string) (prices map[string]string, lines []costLine, sum string) {
	t.Helper()
	prices = map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := priceRow.FindStringSubmatch(line); m != nil {
			prices[m[1]] = m[2]
		} else if m := costRow.FindStringSubmatch(line); m != nil {
			lines = append(lines, costLine{m[1], m[3], m[4], number(t, m[2])})
		} else if m := sumRow.FindStringSubmatch(line); m != nil {
			sum = m[1]
		} else if strings.HasPrefix(line, "|") && strings.Contains(line, "`") {
			t.Errorf("this row has another form: %s", line)
		}
	}
	return prices, lines, sum
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
