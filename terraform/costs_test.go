package terraform_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// unknown stands in COSTS.md for a price without a source, and for a cost that
// depends on such a price.
const unknown = "unknown"

// TestCosts computes the example of COSTS.md again.
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
			t.Errorf("%s: there is no price %s", line.what, line.price)
		case price == unknown:
			if line.dollars != unknown {
				t.Errorf("%s: %s is unknown, so it cannot cost %s", line.what, line.price, line.dollars)
			}
		default:
			cost := math.Round(100*line.quantity*number(t, price)) / 100
			total += cost
			if want := strconv.FormatFloat(cost, 'f', 2, 64); line.dollars != want {
				t.Errorf("%s: costs %s, not %s", line.what, want, line.dollars)
			}
		}
	}
	if want := strconv.FormatFloat(total, 'f', 2, 64); sum != want {
		t.Errorf("the sum is %s, not %s", want, sum)
	}
	for name := range prices {
		if !used[name] {
			t.Errorf("the example has nothing that costs %s", name)
		}
	}
	if len(lines) < 10 || len(prices) < 10 {
		t.Errorf("read %d lines and %d prices: the tables have another form", len(lines), len(prices))
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

// readCosts finds the rows of both tables: prices by name, what they are taken
// times, and the sum.
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
			t.Errorf("a row of another form: %s", line)
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
