package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/googleapis/gax-go/v2"
	"golang.org/x/sync/semaphore"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/backup"
	"github.com/affinityengine/affinity/shared/local/disk"
	"github.com/affinityengine/affinity/shared/local/rows"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// ACMEDir is the folder within the data folder with the account and the certificates of --tls-host.
const ACMEDir = "acme"

// Backups say where an engine backs itself up, and how often.
type Backups struct {
	To    string        // a folder, which holds all its backups
	Every time.Duration // from one backup to the next
	Keep  int           // how many there are at most; 0: all
	Key   *backup.Key   // that encrypts them; nil: none does
}

// savedFiles are the files that a backup holds beside the database: without them secured keys are not valid,
// regions have other instances, the operator's token is another one, everybody logs in to the console again, and
// the certificate authority is asked again. It leaves out the lock, and files that others put there.
func savedFiles(data string) ([]string, error) {
	files := []string{cipherFile, regionsFile, clockFile, OperatorFile, consoleFile, disk.VersionFile}
	entries, err := os.ReadDir(filepath.Join(data, ACMEDir))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	for _, e := range entries {
		files = append(files, filepath.Join(ACMEDir, e.Name()))
	}
	return files, err
}

// saver hands out copies of a data folder.
type saver struct {
	disk *disk.Disk
	data string
	now  func() time.Time
	turn *semaphore.Weighted // who has the one copy
	gate *semaphore.Weighted // imports hold one unit each
}

func newSaver(d *disk.Disk, data string, now func() time.Time) *saver {
	return &saver{disk: d, data: data, now: now, turn: semaphore.NewWeighted(1),
		gate: semaphore.NewWeighted(math.MaxInt32)}
}

// importsTime is how long a copy waits for imports in progress, and new ones for the copy.
const importsTime = 10 * time.Second

// watch makes requests of the function imports wait for a copy. One that a copy cuts short has events in the log
// that no profile counts until its client sends it again, and after a restore the client need not know. What
// other requests and tasks leave unfinished, a restored engine finishes.
func (s *saver) watch(w Watch) Watch {
	inner := w
	w.Function = func(name string, h http.Handler) http.Handler {
		if h = inner.function(name, h); name != "imports" {
			return h
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s.gate.Acquire(r.Context(), 1) != nil {
				return // the client has gone
			}
			defer s.gate.Release(1)
			h.ServeHTTP(w, r)
		})
	}
	return w
}

// checkpoint copies the folder between two imports, or beside those that take long.
func (s *saver) checkpoint(ctx context.Context, files []string) (dir string, err error) {
	waiting, cancel := context.WithTimeout(ctx, importsTime)
	defer cancel()
	if s.gate.Acquire(waiting, math.MaxInt32) == nil {
		defer s.gate.Release(math.MaxInt32)
	}
	return s.disk.Checkpoint(files...)
}

// save calls do with the content of the folder, which it has read through: a damaged folder is no backup. One
// call at a time does, the others wait.
func (s *saver) save(ctx context.Context, do func(backup.Source) error) (err error) {
	if err := s.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.turn.Release(1)
	files, err := savedFiles(s.data)
	if err != nil {
		return err
	}
	info, _ := debug.ReadBuildInfo()
	about := backup.About{Version: api.Version, Commit: api.Release(info), Folder: disk.Format(), Time: s.now().UTC()}
	dir, err := s.checkpoint(ctx, files)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.disk.RemoveCheckpoint()) }()
	report, err := inspect(dir, func([]byte, []byte) error { return ctx.Err() })
	if err != nil {
		return err
	}
	if len(report.Damage) > 0 {
		return fmt.Errorf("the data folder is damaged, so its copy is no backup: %s; end the engine and see `affinity data "+
			"check %s`", report.Damage[0], s.data)
	}
	about.Values = report.Values
	return do(backup.Folder(ctx, dir, about))
}

// SaveData calls do with the content of a data folder that no process uses, after it has recovered what an
// earlier one had written.
func SaveData(ctx context.Context, dir string, do func(backup.Source) error) error {
	if _, err := disk.Look(dir); err != nil {
		return err
	}
	d, err := disk.Open(dir, rows.Join, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return errors.Join(newSaver(d, dir, time.Now).save(ctx, do), d.Close())
}

// handler answers operator.BackupPath with a stream of package backup.
func (s *saver) handler(log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			_ = httpapi.WriteMessage(w, http.StatusMethodNotAllowed, "POST asks for a backup")
			return
		}
		begun := false
		err := s.save(r.Context(), func(content backup.Source) error {
			w.Header().Set("Content-Type", "application/x-tar")
			begun = true
			control := http.NewResponseController(w)
			return errors.Join(backup.Send(patient{w, control}, content), control.SetWriteDeadline(time.Time{}))
		})
		switch {
		case err == nil:
		case begun: // the client sees that the stream has no end
			log.LogAttrs(r.Context(), slog.LevelError, "a backup was not sent", slog.Any("error", err))
			panic(http.ErrAbortHandler)
		case errors.Is(err, disk.ErrInMemory):
			_ = httpapi.WriteMessage(w, http.StatusConflict, err.Error())
		default:
			log.LogAttrs(r.Context(), slog.LevelError, "a backup was not begun", slog.Any("error", err))
			_ = httpapi.WriteMessage(w, http.StatusInternalServerError, err.Error())
		}
	})
}

// patience is how long a client may leave what it was sent.
const patience = time.Minute

// patient gives up on a client that takes nothing, so that others have their turn.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (p patient) Write(b []byte) (int, error) {
	if err := p.control.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	return p.ResponseWriter.Write(b)
}

// startBackups returns what copies the folder, and begins the schedule of the options.
func (s *Stack) startBackups(o Options) *saver {
	b := s.Backends
	saves := newSaver(s.disk, o.Data, b.Now)
	if o.Backups.To != "" {
		schedule := &backupSchedule{every: o.Backups.Every, now: b.Now, log: b.Log,
			last: func() (time.Time, error) { return backup.Last(o.Backups.To) },
			call: func(ctx context.Context) (done backup.Written, err error) {
				err = saves.save(ctx, func(content backup.Source) (err error) {
					done, err = backup.Write(o.Backups.To, content, backup.Options{Keep: o.Backups.Keep, Key: o.Backups.Key,
						Paced: true})
					return err
				})
				return done, err
			}}
		b.Metrics.WatchSeconds("affinity.backup_age",
			"Age of the newest whole backup of the schedule; infinite: there is none.", schedule.age)
		s.goOn(schedule.run)
	}
	return saves
}

// goOn runs something until the stack closes.
func (s *Stack) goOn(run func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	s.onClose(func() error {
		stop()
		<-done
		return nil
	})
}

// backupSchedule calls when the newest backup is as old as a new one comes.
type backupSchedule struct {
	every time.Duration
	now   func() time.Time
	last  func() (time.Time, error) // when the newest one was made; zero: there is none
	call  func(context.Context) (backup.Written, error)
	log   *slog.Logger

	newest atomic.Pointer[time.Time]
}

// backupPause is how long a failed backup waits for the next try, at most.
const backupPause = 10 * time.Minute

// run calls until the context ends.
func (b *backupSchedule) run(ctx context.Context) {
	for wait := b.due(); gax.Sleep(ctx, wait) == nil; wait = b.due() {
		begun := b.now()
		done, err := b.call(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			pause := min(b.every, backupPause)
			b.log.LogAttrs(ctx, slog.LevelError, "the backup failed; the engine goes on, and tries again",
				slog.Any("error", err), slog.Duration("after", pause))
			if gax.Sleep(ctx, pause) != nil {
				return
			}
			continue
		}
		b.log.LogAttrs(ctx, slog.LevelInfo, "backup", slog.String("folder", done.Dir),
			slog.Int64("bytes", done.Manifest.Bytes()), slog.Int64("new", done.New), slog.Duration("took", b.now().Sub(begun)))
	}
}

// due returns how long the next backup has to wait.
func (b *backupSchedule) due() time.Duration {
	last, err := b.last()
	if err != nil || last.IsZero() {
		return 0 // the call says what is wrong
	}
	b.newest.Store(&last)
	return min(b.every, max(0, last.Add(b.every).Sub(b.now()))) // the clock may have been ahead
}

// age returns how old the newest backup is, in seconds.
func (b *backupSchedule) age() float64 {
	last := b.newest.Load()
	if last == nil {
		return math.Inf(1)
	}
	return b.now().Sub(*last).Seconds()
}
