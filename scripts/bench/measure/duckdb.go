package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// duckDB runs DuckDB's command line tool with a database in memory.
type duckDB struct{ tool string }

func findDuckDB(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("DuckDB was not measured: %w; --duckdb names its command line tool", err)
	}
	return filepath.Abs(path)
}

func (d duckDB) measure(ctx context.Context, data peerData, layout string, repeat int) (taken, error) {
	cmd := exec.CommandContext(ctx, d.tool)
	if filepath.Base(d.tool) != "duckdb.mjs" {
		cmd.Args = append(cmd.Args, "-bail", "-batch")
	}
	var out, faults bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(duckScript(data, layout, repeat)), &out, &faults
	if err := cmd.Run(); err != nil {
		return taken{}, fmt.Errorf("run %s: %w: %s", d.tool, err, strings.TrimSpace(faults.String()))
	}
	all, err := duckTimes(out.String())
	if err == nil && len(all) != repeat {
		err = fmt.Errorf("%s timed %d statements, want %d: %s", d.tool, len(all), repeat, strings.TrimSpace(faults.String()))
	}
	if err != nil {
		return taken{}, err
	}
	return median(all), nil
}

// duckScript loads the tables, computes the profiles and writes them to a file. It has
// a statement a line.
func duckScript(data peerData, layout string, repeat int) string {
	lines := []string{fmt.Sprintf("set threads = %d;", workers())}
	for _, t := range peerTables {
		lines = append(lines, fmt.Sprintf("create table %s (%s);", t.name, t.columns),
			fmt.Sprintf("copy %s from %s (header false);", t.name, quoted(data.file(t.name))))
	}
	if layout == "text" {
		lines = append(lines, texts+";")
	}
	profiles := data.profiles(layout, "create or replace table profiles") + ";"
	lines = append(lines, profiles, ".timer on") // once to warm up
	for range repeat {
		lines = append(lines, profiles)
	}
	lines = append(lines, ".timer off", fmt.Sprintf("copy (%s) to %s (header false);", export(layout),
		quoted(filepath.Join(data.dir, layout+".csv"))))
	return strings.Join(lines, "\n") + "\n"
}

// quoted is an SQL text.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

var duckTime = regexp.MustCompile(`Run Time \(s\): real ([0-9.e-]+) user ([0-9.e-]+) sys ([0-9.e-]+)`)

// duckTimes reads the wall and processor times that the tool's timer printed.
func duckTimes(out string) (all []taken, err error) {
	for _, m := range duckTime.FindAllStringSubmatch(out, -1) {
		real, err1 := strconv.ParseFloat(m[1], 64)
		user, err2 := strconv.ParseFloat(m[2], 64)
		system, err3 := strconv.ParseFloat(m[3], 64)
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("DuckDB's timer printed %q: %w", m[0], err)
		}
		all = append(all, taken{seconds: real, cpu: user + system})
	}
	return all, nil
}
