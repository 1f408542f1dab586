package console

import (
	"errors"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	plots "github.com/affinityengine/affinity/shared/judge/lift"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// shownReports is of how many experiments, the newest first, the page shows a report.
const shownReports = 3

// reportView is a report as the page shows it.
type reportView struct {
	api.ExperimentReport
	Month string // of a report of a month
	Plot  template.HTML
	Days  []reportDay
	Kept  []keptMonth
	Path  string // of the latest report
}

// reportDay is a row of the table of days.
type reportDay struct{ Day, Arm, Lift, Interval string }

// keptMonth is a month whose report is kept.
type keptMonth struct {
	Name, Path string
	Shown      bool
}

// readReports reads what the holdout and the newest experiments have shown, of those that have a report. One of them
// may be that of a month.
func readReports(v *visit, experiments []api.Experiment) (reports []reportView, err error) {
	if !v.may(auth.Admin) {
		return nil, nil
	}
	names := []string{api.HoldoutExperiment}
	for _, e := range experiments[:min(len(experiments), shownReports)] {
		names = append(names, e.Name)
	}
	asked := v.URL.Query().Get("of")
	if asked != "" && !slices.Contains(names, asked) {
		names = append(names, asked)
	}
	for _, name := range names {
		var q api.ExperimentReportQuery
		if name == asked {
			q.Month = v.URL.Query().Get("month")
		}
		r, err := v.engine.Jobs().ExperimentReport(v.Context(), name, q)
		if refused, ok := errors.AsType[*api.Error](err); ok && refused.Status == http.StatusNotFound && name != asked {
			continue
		}
		if err != nil {
			return nil, err
		}
		reports = append(reports, viewReport(r, q.Month))
	}
	return reports, nil
}

func viewReport(r api.ExperimentReport, month string) reportView {
	// The drawing escapes what it writes.
	view := reportView{ExperimentReport: r, Month: month, Plot: template.HTML(plots.Plot(r)),
		Path: experimentsPath + "?of=" + url.QueryEscape(r.Experiment)}
	for _, p := range slices.Backward(r.Series) {
		view.Days = append(view.Days, reportDay{p.Day, p.Arm, share(p.Relative), interval(p.Low, p.High)})
	}
	for _, m := range r.Months {
		name := m
		if at, err := time.Parse("2006-01", m); err == nil {
			name = at.Format("January 2006")
		}
		view.Kept = append(view.Kept, keptMonth{name, view.Path + "&month=" + url.QueryEscape(m), m == month})
	}
	return view
}

// LiftOf returns the lift of an arm and its interval in words; the control has none.
func (r reportView) LiftOf(arm string) reportDay {
	for _, l := range r.Lift {
		if l.Arm == arm {
			return reportDay{Lift: share(l.Relative), Interval: interval(l.Low, l.High)}
		}
	}
	return reportDay{Lift: "control"}
}

// Paid writes what the people of an arm paid, by currency.
func (r reportView) Paid(arm api.ReportArm) string {
	text := ""
	for _, currency := range slices.Sorted(maps.Keys(arm.Revenue)) {
		if text != "" {
			text += ", "
		}
		text += number(int64(math.Round(arm.Revenue[currency])))
		if currency != "" {
			text += " " + currency
		}
	}
	if text == "" {
		return "0"
	}
	return text
}

// RatioWords says whether the arms have the people that their weights give.
func (r reportView) RatioWords() string {
	if r.SampleRatio.OK {
		return fmt.Sprintf("The arms have the people that their weights give (p = %s).", small(r.SampleRatio.P))
	}
	return fmt.Sprintf("The arms do not have the people that their weights give (p = %s): find the cause first. "+
		"Nothing is decided.", small(r.SampleRatio.P))
}

// PowerWords says how long a difference takes to show.
func (r reportView) PowerWords() string {
	of := percent(r.Power.For)
	switch days := r.Power.Days; {
	case days == nil:
		return "Nobody can say yet how many days a difference of " + of + " takes."
	case *days == 0:
		return "A difference of " + of + " would show by now, in four of five cases."
	default:
		return fmt.Sprintf("At this traffic a difference of %s shows after %s more days, in four of five cases.", of,
			number(int64(*days)))
	}
}

// share writes a relative difference with its sign, – if there is none.
func share(of *float64) string {
	if of == nil {
		return "–"
	}
	text := strconv.FormatFloat(math.Abs(100**of), 'f', 1, 64) + " %"
	if *of < 0 {
		return "−" + text
	}
	return "+" + text
}

// interval writes the ends of an interval.
func interval(low, high *float64) string {
	if low == nil || high == nil {
		return "–"
	}
	return share(low) + " to " + share(high)
}

// small writes a chance.
func small(p float64) string {
	if p < 0.001 {
		return "less than 0.001"
	}
	return strconv.FormatFloat(p, 'g', 2, 64)
}
