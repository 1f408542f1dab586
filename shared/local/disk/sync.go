package disk

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// syncEvery is how often the log goes from the system to the disk.
const syncEvery = time.Second

// lateFS lets a write of Pebble's log return once the system has it. So the end of the
// process loses nothing that was acknowledged. A failure of the machine may lose the last
// second, and leaves what was written before. All other files are synced as Pebble asks.
//
// With a sync for each write, an import of real events took three times as long as in
// memory.
type lateFS struct {
	vfs.FS
	log *slog.Logger

	mu    sync.Mutex
	dirty map[*logFile]bool
	ended chan struct{}
	done  chan struct{}
}

func newLateFS(fs vfs.FS, log *slog.Logger) *lateFS {
	l := &lateFS{FS: fs, log: log, dirty: map[*logFile]bool{}, ended: make(chan struct{}), done: make(chan struct{})}
	go l.loop()
	return l
}

func (l *lateFS) loop() {
	defer close(l.done)
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := l.sync(); err != nil {
				l.log.Error("the log of the data folder is not on the disk yet", "error", err)
			}
		case <-l.ended:
			return
		}
	}
}

// sync writes the logs that have changed to the disk.
func (l *lateFS) sync() error {
	l.mu.Lock()
	dirty := l.dirty
	l.dirty = map[*logFile]bool{}
	l.mu.Unlock()
	var errs []error
	for f := range dirty {
		errs = append(errs, f.sync())
	}
	return errors.Join(errs...)
}

// close ends the loop. Pebble has closed its files, which synced them. A nil lateFS has none.
func (l *lateFS) close() {
	if l == nil {
		return
	}
	close(l.ended)
	<-l.done
}

// isLog reports whether a file is a log that Pebble writes. That of a copy is no sequence of whole chunks.
func isLog(name string) bool { return strings.HasSuffix(name, ".log") && !inCheckpoint(name) }

// Create makes a file.
func (l *lateFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return l.late(name)(l.FS.Create(name, category))
}

// ReuseForWrite renames a file and opens it.
func (l *lateFS) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return l.late(to)(l.FS.ReuseForWrite(from, to, category))
}

func (l *lateFS) late(name string) func(vfs.File, error) (vfs.File, error) {
	return func(f vfs.File, err error) (vfs.File, error) {
		if err != nil || !isLog(name) {
			return f, err
		}
		return &logFile{File: f, fs: l}, nil
	}
}

// logFile is a log that is open for writing.
type logFile struct {
	vfs.File
	fs      *lateFS
	buf     []byte       // of Write, which one goroutine calls
	written atomic.Int64 // bytes
	synced  atomic.Int64 // of them, those that are on the disk
	mu      sync.Mutex   // of closed
	closed  bool
}

// Write corrects what the chunks say of the log. Pebble takes Sync at its word, and would
// not open a log after a failure of the machine that has kept a later page of the last
// second and lost an earlier one.
func (f *logFile) Write(p []byte) (int, error) {
	f.buf = append(f.buf[:0], p...)
	setSynced(f.buf, f.written.Load(), f.synced.Load())
	n, err := f.File.Write(f.buf)
	f.written.Add(int64(n))
	return n, err
}

func (f *logFile) Sync() error     { return f.later() }
func (f *logFile) SyncData() error { return f.later() }

// SyncTo reports that nothing is on the disk for certain.
func (f *logFile) SyncTo(int64) (bool, error) { return false, f.later() }

func (f *logFile) later() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.dirty[f] = true
	return nil
}

// sync writes the file to the disk, or has it written with the next sync.
func (f *logFile) sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	written := f.written.Load()
	if err := f.File.SyncData(); err != nil {
		return errors.Join(err, f.later())
	}
	f.synced.Store(written)
	return nil
}

// Close syncs the file and closes it.
func (f *logFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return errors.Join(f.File.SyncData(), f.File.Close())
}
