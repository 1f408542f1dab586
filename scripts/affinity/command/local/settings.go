package local

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// settings are values of flags from the environment and from a file of lines `name = value`, with the names of the
// flags. Flags have no sections and no lists within lists, so the file needs no richer form, and no library.
type settings struct {
	configFile string
	read       []setting
}

// setting is a line of the file that has set a flag.
type setting struct{ flag, value, at string }

func (s *settings) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.configFile, "config", "",
		"file with lines NAME = VALUE, with the names of these flags; # begins a comment. A flag goes before its "+
			"variable, which is "+variable("tls-host")+" for --tls-host, and that before the file")
}

// variable is the variable of the environment for a flag.
func variable(flag string) string {
	return "AFFINITY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// settable reports whether a flag has a variable and may be in the file.
func settable(f *pflag.Flag) bool {
	return f != nil && !f.Hidden && f.Name != "help" && f.Name != "config" && f.Name != "check"
}

// fill sets the flags of a command that its line does not give, and returns every fault.
func (s *settings) fill(cmd *cobra.Command) (faults []error) {
	given := map[string]bool{}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		given[f.Name] = f.Changed
		text := os.Getenv(variable(f.Name))
		if f.Changed || text == "" || !settable(f) {
			return
		}
		given[f.Name] = true
		if err := cmd.Flags().Set(f.Name, text); err != nil {
			faults = append(faults, fmt.Errorf("the environment variable %s: %w", variable(f.Name), err))
		}
	})
	if s.configFile == "" {
		return faults
	}
	file, err := os.Open(s.configFile)
	if err != nil {
		return append(faults, fmt.Errorf("read the settings of --config: %w", err))
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if err := s.line(cmd, fmt.Sprintf("%s:%d", s.configFile, n), line, given); err != nil {
			faults = append(faults, err)
		}
	}
	if err := lines.Err(); err != nil {
		faults = append(faults, fmt.Errorf("read the settings of --config: %w", err))
	}
	return faults
}

// line takes a line of the file, which is at this place. The flags that are given keep their values.
func (s *settings) line(cmd *cobra.Command, at, line string, given map[string]bool) error {
	name, value, both := strings.Cut(line, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !both {
		return fmt.Errorf("%s: %q must be name = value, such as backup-every = 6h", at, line)
	}
	flag := cmd.LocalFlags().Lookup(name)
	if !settable(flag) {
		return fmt.Errorf("%s: there is no setting %q: `%s --help` lists all, without the --", at, name, cmd.CommandPath())
	}
	if given[name] {
		return nil
	}
	if _, list := flag.Value.(pflag.SliceValue); flag.Changed && !list {
		return fmt.Errorf("%s: %s has a value already: name it once", at, name)
	}
	if err := cmd.Flags().Set(name, value); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	s.read = append(s.read, setting{name, value, at})
	return nil
}

// locate names the line of the file whose value an error is about, if it begins with --name. Then it is no fault of the
// command line.
func (s *settings) locate(err error) error {
	at := ""
	for _, r := range s.read {
		if strings.HasPrefix(err.Error(), "--"+r.flag+" ") && (at == "" || strings.Contains(err.Error(), r.value)) {
			at = r.at
		}
	}
	if at == "" {
		return err
	}
	return cli.WithCode(fmt.Errorf("%s: %s", at, err), cli.ExitFailed)
}
