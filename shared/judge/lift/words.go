package lift

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// words says what the report shows. A wrong sample ratio comes first and leaves nothing else to say. Nothing is said
// to be better or worse as long as its interval holds 0.
func (r Report) words(otherCurrencies bool) string {
	if r.People == 0 {
		return "No user is in this experiment yet."
	}
	if !r.SampleRatio.OK {
		return r.unevenWords()
	}
	var said []string
	open, unknown := false, false
	for _, l := range r.Lift {
		said = append(said, l.words())
		open, unknown = open || !l.Decided, unknown || l.Relative == nil
	}
	if open && !unknown {
		said = append(said, r.Power.words())
	}
	if b := r.Bound; b != nil {
		unit := string(r.Metric)
		if r.Metric == Revenue {
			unit = cmp.Or(r.Currency, "of revenue")
		}
		said = append(said, fmt.Sprintf("What a user has beyond %s %s does not count (%s).",
			grouped(b.Amount), unit, users(b.Users)))
	}
	if otherCurrencies {
		in := "in " + r.Currency
		if r.Currency == "" {
			in = "without a currency"
		}
		said = append(said, fmt.Sprintf("Only revenue %s counts.", in))
	}
	return strings.Join(said, " ")
}

// unevenWords names the arm that is furthest from its weight.
func (r Report) unevenWords() string {
	worst, most := r.Arms[0], -1.0
	for _, a := range r.Arms {
		if off := math.Abs(float64(a.Users)-a.Expected) / math.Sqrt(max(a.Expected, 1)); off > most {
			worst, most = a, off
		}
	}
	return fmt.Sprintf("The users are not divided as the weights say: arm %s has %s of %s, and should have about %s. "+
		"By chance this happens in fewer than 1 of 1,000 experiments. Find the cause: until then this experiment "+
		"shows nothing.", worst.Name, grouped(float64(worst.Users)), users(r.People), grouped(math.Round(worst.Expected)))
}

// words says what an arm has shown.
func (l Lift) words() string {
	switch {
	case l.Relative == nil:
		return fmt.Sprintf("Arm %s or %s has no %s yet: not decided.", l.Arm, l.Over, l.Metric)
	case l.Low == nil || l.High == nil:
		return fmt.Sprintf("Arm %s or %s has fewer than %d users with %s: not decided.", l.Arm, l.Over, enough, l.Metric)
	}
	verdict := "not decided"
	switch {
	case l.Decided && *l.Low > 0:
		verdict = "decided, more than " + l.Over
	case l.Decided:
		verdict = "decided, less than " + l.Over
	}
	return fmt.Sprintf("Arm %s %s; between %s and %s: %s.",
		l.Arm, l.difference(), signed(*l.Low), signed(*l.High), verdict)
}

// difference says how an arm compares with the control.
func (l Lift) difference() string {
	much, as := percent(math.Abs(*l.Relative)), "more"
	if *l.Relative < 0 {
		as = "less"
	}
	if l.Metric == Revenue {
		return fmt.Sprintf("earned %s %s per user than %s", much, as, l.Over)
	}
	if as == "less" {
		as = "fewer"
	}
	return fmt.Sprintf("got %s %s %s per user than %s", much, as, l.Metric, l.Over)
}

// words says when a difference would show.
func (p Power) words() string {
	effect := percent(p.For)
	switch {
	case p.Days == nil:
		return fmt.Sprintf("At this traffic, a difference of %s takes more than ten years to show.", effect)
	case *p.Days == 0:
		return fmt.Sprintf("A difference of %s would have shown by now in four of five experiments.", effect)
	case *p.Days == 1:
		return fmt.Sprintf("At this traffic, 1 more day would show a difference of %s.", effect)
	default:
		return fmt.Sprintf("At this traffic, %s more days would show a difference of %s.", grouped(float64(*p.Days)), effect)
	}
}

func users(n int64) string {
	if n == 1 {
		return "1 user"
	}
	return grouped(float64(n)) + " users"
}

// percent writes a share in percent, with two digits that count or all before the point: 0.0345 is 3.5 %.
func percent(share float64) string {
	value := 100 * share
	digits := 0
	if value != 0 {
		digits = min(max(1-int(math.Floor(math.Log10(math.Abs(value)))), 0), 12)
	}
	text := strconv.FormatFloat(value, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + " %"
}

func signed(share float64) string {
	if share < 0 {
		return percent(share)
	}
	return "+" + percent(share)
}

// grouped writes a number with commas between thousands, with two digits behind the point if it is not whole.
func grouped(n float64) string {
	text := strconv.FormatFloat(n, 'f', -1, 64)
	if n != math.Trunc(n) {
		text = strconv.FormatFloat(n, 'f', 2, 64)
	}
	whole, rest := text, ""
	if at := strings.IndexByte(text, '.'); at >= 0 {
		whole, rest = text[:at], text[at:]
	}
	for at := len(whole) - 3; at > 0 && whole[at-1] != '-'; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	return whole + rest
}

// Words says what a test needs.
func (t Test) Words(n Needs) string {
	days := func(n int) string {
		if n == 1 {
			return "1 day"
		}
		return grouped(float64(n)) + " days"
	}
	others := "the other arm"
	if t.Arms > 2 {
		others = "each other arm"
	}
	said := []string{
		fmt.Sprintf("With %s new people a day, %s show a difference of %s in four of five tests: "+
			"from %s of the people to %s.",
			grouped(t.Daily), days(n.Days), percent(t.Effect), percent(t.Base), percent(t.Base*(1+t.Effect))),
		fmt.Sprintf("That is %s people, %s in the control and %s in %s.",
			grouped(float64(n.People)), grouped(float64(n.Control)), grouped(float64(n.Arm)), others),
		fmt.Sprintf("The report may be read every day. If it were read only once, on the last day, %s would do.",
			days(n.OnceDays)),
	}
	for i, s := range n.Shows {
		begin := "%s show a difference of %s"
		if i > 0 {
			begin = ", %s one of %s"
		} else {
			said = append(said, "")
		}
		said[len(said)-1] += fmt.Sprintf(begin, days(s.Days), percent(s.Effect))
	}
	if len(n.Shows) > 0 {
		said[len(said)-1] += "."
	}
	return strings.Join(said, "\n")
}
