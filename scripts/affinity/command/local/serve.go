package local

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// serveFlags are the flags of serve as they were given.
type serveFlags struct {
	upFlags
	certificates
	settings
	backups     scheduleFlags
	hosts       []string
	forwarded   int
	admin       string
	level       string
	acceptClock bool
	check       bool
}

// Serve returns the command serve, which starts an engine for production with start.
func Serve(t *command.Tool, start Starter) *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the engine for production on one machine",
		Long: "Run the engine of `affinity up --data` for production, in this process, until SIGTERM or Ctrl-C.\n" +
			"It has no app and no key until `affinity app create` makes some. The operator's token is in the file\n" +
			"operator.token of the folder, which only its owner may read; $AFFINITY_OPERATOR replaces it.\n" +
			"The public address has TLS, with a certificate that it gets itself (--tls-host, by ACME's challenge\n" +
			"tls-alpn-01: port 443 of the host must lead here) or yours (--tls-cert, --tls-key), or plain HTTP behind\n" +
			"--forwarded proxies, or is on loopback.\n" +
			"The operators' address (--admin) has the operator's routes, /metrics, /debug/pprof/, /readyz, and the API\n" +
			"for the commands of this tool. GET /healthz of both says whether the engine can write and read.\n" +
			"What is acknowledged is on the disk (--sync): a failure of the machine does not lose it. Events are\n" +
			"refused, and /readyz answers 503, while the disk is nearly full.\n" +
			"Every flag can be a line of a file (--config), and a variable of the environment. --check looks at all that a\n" +
			"start needs, in place of it, and exits with 1 if something is wrong.\n" +
			"Logs are JSON, a line each, on standard error. The Go runtime keeps its memory below 80 % of the machine's\n" +
			"or of the control group's, unless GOMEMLIMIT is set.",
		Example: "  affinity serve --data /var/lib/affinity --tls-host shop.example.com\n" +
			"  affinity serve --config /etc/affinity/affinity.conf --check\n" +
			"  affinity serve --data /var/lib/affinity --forwarded 1 --backup /mnt/backups --backup-every 6h\n" +
			"  AFFINITY_OPERATOR=$(cat /var/lib/affinity/operator.token) affinity app create shop --url http://127.0.0.1:9090",
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, faults := f.options(cmd)
			if f.check {
				return f.look(t, o, faults)
			}
			if len(faults) > 0 {
				return errors.Join(faults...)
			}
			if err := stack.ClockFault(o.Data, time.Now()); err != nil && !f.acceptClock {
				return err
			}
			limitMemory(os.DirFS("/"), o.Log)
			return serve(cmd.Context(), t, start, o, func(_ context.Context, s RunningStack) error {
				o.Log.Info("ready", "url", s.URL(), "admin", adminURL(o.Admin), "data", o.Data,
					"sync", o.Sync, "operator", operatorPlace(o))
				return nil
			}, false)
		},
	}
	f.add(cmd)
	return cmd
}

func (f *serveFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "folder to keep everything in (required)")
	flags.StringVar(&f.addr, "addr", "", "public address to serve on (default: :443 with TLS, or else 127.0.0.1:8080)")
	flags.StringSliceVar(&f.names, "tls-host", nil,
		"hosts to get certificates for by ACME, kept in the folder (repeatable); this accepts the "+
			"terms of the certificate authority")
	flags.StringVar(&f.directory, "acme-directory", "",
		"directory of the certificate authority (default: that of Let's Encrypt)")
	flags.StringVar(&f.cert, "tls-cert", "",
		"file of the certificate and its chain, as PEM; read again when it changes")
	flags.StringVar(&f.key, "tls-key", "", "file of the certificate's key, as PEM")
	flags.IntVar(&f.forwarded, "forwarded", 0,
		"how many proxies in front append to X-Forwarded-For: as many of its entries are believed")
	flags.StringSliceVar(&f.hosts, "host", nil, "host and the app that it serves, as acme.example.com=acme (repeatable); "+
		"then all other hosts are refused")
	flags.StringVar(&f.admin, "admin", "127.0.0.1:9090", "operators' address: host:port of loopback, or unix:/path")
	flags.BoolVar(&f.sync, "sync", true, syncUsage+"; without it the last second may be lost")
	flags.StringVar(&f.level, "log-level", "info", "least level of the logs: debug, info, warn, error")
	flags.BoolVar(&f.acceptClock, "accept-clock", false,
		"start although the folder was last used later than now, or more than a month ago")
	flags.BoolVar(&f.check, "check", false,
		"look at the settings, certificate, addresses, folder, disk and clock, and do not serve")
	f.settings.add(cmd)
	f.backups.add(cmd)
	f.addEngine(cmd)
	for _, name := range []string{"url", "app", "key", "key-file"} {
		hide(cmd, name)
	}
}

// options checks the flags, and returns every fault.
func (f *serveFlags) options(cmd *cobra.Command) (o Options, faults []error) {
	for _, name := range []string{"url", "app", "key", "key-file"} {
		if cmd.Flags().Changed(name) {
			faults = append(faults, cli.Usagef("--%s is about a running engine, but serve starts one: use --addr, and make "+
				"apps with `affinity app create`", name))
		}
	}
	if faults = append(faults, f.fill(cmd)...); len(faults) > 0 {
		return o, faults // what follows would be about values that nobody gave
	}
	found := func(err error) {
		if err != nil {
			faults = append(faults, f.locate(err))
		}
	}
	if f.data == "" {
		found(cli.Usagef("serve keeps everything in a folder: name it with --data DIR"))
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.level)); err != nil {
		found(cli.Usagef("--log-level %q: must be debug, info, warn or error", f.level))
	}
	o.Log = slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
	found(f.engineOptions(&o))
	var err error
	o.Hosts, err = parseHosts(f.hosts)
	found(err)
	if o.Forwarded = f.forwarded; o.Forwarded < 0 || o.Forwarded > 10 {
		found(cli.Usagef("--forwarded %d: must be 0 (no proxy) to 10", o.Forwarded))
	}
	if o.Admin = f.admin; !validAdmin(o.Admin) {
		found(cli.Usagef("--admin %q must be host:port of loopback, such as 127.0.0.1:9090, or unix:/path of a socket",
			o.Admin))
	}
	if o.Operator = os.Getenv(operator.Variable); o.Operator != "" {
		if err := operator.CheckToken(o.Operator); err != nil {
			found(cli.Usagef("%v", err))
		}
	}
	for _, name := range f.names {
		if len(o.Hosts) > 0 && !o.Hosts.Has(name) {
			found(cli.Usagef("--tls-host %s gets a certificate, but --host names other hosts alone: give "+
				"--host %[1]s=APP too", name))
		}
	}
	o.TLS, err = f.config(o.Data, o.Log)
	found(err)
	o.Backups, err = f.backups.options(cmd, o.Data)
	found(err)
	found(f.address(&o))
	return o, faults
}

// address decides the public address, which shows no key on the way.
func (f *serveFlags) address(o *Options) error {
	if o.Addr = f.addr; o.Addr == "" {
		if o.Addr = "127.0.0.1:8080"; f.wanted() {
			o.Addr = ":443"
		}
	}
	if _, _, err := net.SplitHostPort(o.Addr); err != nil {
		return cli.Usagef("--addr %q must be host:port: %v", o.Addr, err)
	}
	if !f.wanted() && o.Forwarded == 0 && !httpapi.Loopback(o.Addr) {
		return cli.Usagef("--addr %s can be reached from other machines, and plain HTTP shows keys on the way: give "+
			"--tls-host, or --tls-cert and --tls-key, or --forwarded 1 behind a proxy with TLS", o.Addr)
	}
	return nil
}

var hostForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)

// parseHosts reads texts such as acme.example.com=acme.
func parseHosts(texts []string) (auth.Hosts, error) {
	hosts := auth.Hosts{}
	for _, text := range texts {
		host, app, _ := strings.Cut(text, "=")
		host = strings.ToLower(host)
		switch {
		case !hostForm.MatchString(host) || len(host) > 253 || !config.ValidAppID(app):
			return nil, cli.Usagef("--host %q must be HOST=APP, such as acme.example.com=acme, without scheme and port", text)
		case hosts[host] != "":
			return nil, cli.Usagef("--host %s: the host serves app %s already: name it once", text, hosts[host])
		}
		hosts[host] = app
	}
	return hosts, nil
}

func validAdmin(at string) bool {
	if path, socket := strings.CutPrefix(at, "unix:"); socket {
		return filepath.IsAbs(path)
	}
	_, _, err := net.SplitHostPort(at)
	return err == nil && httpapi.Loopback(at)
}

func adminURL(at string) string {
	if strings.HasPrefix(at, "unix:") {
		return at
	}
	return (&url.URL{Scheme: "http", Host: at}).String()
}

// operatorPlace says where the operator's token is.
func operatorPlace(o Options) string {
	if o.Operator != "" {
		return "$" + operator.Variable
	}
	return filepath.Join(o.Data, stack.OperatorFile)
}
