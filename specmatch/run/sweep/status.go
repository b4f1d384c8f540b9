package sweep

import (
	"fmt"

	"github.com/specmatch/specmatch/specmatch/table"
)

// Status returns a table of the finished units of each run, with the measured and the remaining time.
func (s *Sweep) Status() (*table.Table, error) {
	t := table.New("run", table.Names("units", "finished", "hours", "hours left")...)
	total := 0
	left := 0.0
	unknown := false
	units := 0
	for _, r := range s.Runs {
		n, hours, err := s.finished(r)
		if err != nil {
			return nil, err
		}
		remaining := table.Text("?")
		if n > 0 {
			h := hours / float64(n) * float64(len(r.Units)-n)
			left += h
			remaining = table.Number(h, 3)
		}
		unknown = unknown || n == 0
		total += n
		units += len(r.Units)
		t.Add(
			r.Name,
			table.Number(float64(len(r.Units)), 0),
			table.Number(float64(n), 0),
			table.Number(hours, 3),
			remaining,
		)
	}
	t.Caption = fmt.Sprintf("%s: %d of %d units are finished", s.Experiment, total, units)
	if total < units && !unknown {
		t.Caption += fmt.Sprintf("; the rest takes about %.2f hours in a single task", left)
	}
	return t, nil
}
