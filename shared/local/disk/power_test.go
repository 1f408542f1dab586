package disk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/power"
)

// powerFS is a disk that fails with the power. dir is the data folder on it.
type powerFS struct {
	power.FS
	dir  string
	sync bool
}

func newPowerFS(t *testing.T) powerFS {
	t.Helper()
	dir := t.TempDir()
	fs, err := power.NewFS(dir)
	must.Succeed(t, err)
	return powerFS{FS: fs, dir: dir}
}

// newPowerDisk opens the data folder of a new powerFS. The end of the test closes it.
func newPowerDisk(t *testing.T) (powerFS, *Disk) {
	t.Helper()
	fs := newPowerFS(t)
	d, err := fs.open()
	must.Succeed(t, err)
	must.CloseAtEnd(t, d)
	return fs, d
}

// fail returns the disk as a failure of the power would leave it now: with all synced
// pages, and with this share of the others, by chance. The folder has another name, so
// that it can be opened beside the first one.
func (f powerFS) fail(t *testing.T, percent int, seed uint64) powerFS {
	t.Helper()
	after := powerFS{f.Fail(percent, seed), t.TempDir(), f.sync}
	err := errors.Join(after.MkdirAll(after.dir, 0o700),
		after.Rename(filepath.Join(f.dir, engineDir), filepath.Join(after.dir, engineDir)))
	must.Succeed(t, err)
	return after
}

func (f powerFS) open() (*Disk, error) {
	return OpenWith(f.dir, Settings{Sync: f.sync, Files: f.FS}, joinLines, silent)
}

// prefix returns how many of n writes with the keys 0, 1, 2, ... the disk holds. A write
// that is lost before one that is there is an error, as is a folder that does not open.
func (f powerFS) prefix(n int) (int, error) {
	d, err := f.open()
	if err != nil {
		return 0, fmt.Errorf("after a failure of the power: %w", err)
	}
	held := 0
	for i := range n {
		there, getErr := d.Get([]byte(strconv.Itoa(i)), func([]byte) error { return nil })
		if there && held < i {
			getErr = fmt.Errorf("write %d is there, and write %d is lost", i, held)
		}
		if err = errors.Join(err, getErr); there {
			held++
		}
	}
	return held, errors.Join(err, d.Close())
}

// second lets a second pass, and its sync end. The clock is that of the test.
func second() {
	time.Sleep(syncEvery)
	synctest.Wait()
}

// A write returns before it is on the disk, and is on it a second later.
func TestLogIsSyncedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, d := newPowerDisk(t)
		time.Sleep(syncEvery / 2)
		for n := range 8 {
			must.Succeed(t, set(d, strconv.Itoa(n), "1"))
			if got, err := fs.fail(t, 0, 0).prefix(n + 1); got != n || err != nil {
				t.Errorf("after a failure at once, %d writes are there (%v), want %d", got, err, n)
			}
			second()
			if got, err := fs.fail(t, 0, 0).prefix(n + 1); got != n+1 || err != nil {
				t.Errorf("after a failure a second later, %d writes are there (%v), want %d", got, err, n+1)
			}
			if n%3 == 2 { // the next writes go to another log
				must.Succeed(t, d.db.Flush())
			}
		}
	})
}

// A later page of the last second may have reached the disk without an earlier one.
func TestMissingPageOfTheLastSecondIsTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, d := newPowerDisk(t)
		for n := range 20 {
			if n == 10 {
				second()
			}
			must.Succeed(t, set(d, strconv.Itoa(n), strings.Repeat("x", 5_000)))
		}
		for page := 13; page < 24; page++ { // ten writes are 12.3 pages
			after := fs.fail(t, 100, 0)
			after.damage(t, func(log []byte) { clear(log[page*4096 : (page+1)*4096]) })
			if got, err := after.prefix(20); got < 10 || got > page*4096/5_000 || err != nil {
				t.Errorf("without page %d, %d writes are there (%v), want those before it", page, got, err)
			}
		}
		for page := range 11 {
			after := fs.fail(t, 100, 0)
			after.damage(t, func(log []byte) { log[page*4096+2048] ^= 1 })
			if again, err := after.open(); err == nil {
				t.Errorf("the folder opens, although page %d was damaged after it was synced (%v)", page, again.Close())
			}
		}
	})
}

// damage changes the content of the newest log.
func (f powerFS) damage(t *testing.T, change func(log []byte)) {
	t.Helper()
	names, err := f.List(filepath.Join(f.dir, engineDir))
	must.Succeed(t, err)
	names = slices.DeleteFunc(names, func(name string) bool { return !isLog(name) })
	log, err := f.UnsafeGetFileDataBuffer(filepath.Join(f.dir, engineDir, slices.Max(names)))
	must.Succeed(t, err)
	change(log)
}

// newLate makes a lateFS over a powerFS. The end of the test closes it.
func newLate(t *testing.T) (powerFS, *lateFS) {
	t.Helper()
	fs := newPowerFS(t)
	late := newLateFS(fs, silent)
	t.Cleanup(late.close)
	return fs, late
}

// A log says that bytes are on the disk only if they are.
func TestSyncClaimsOnlyWhatIsOnTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, late := newLate(t)
		f, err := late.Create(filepath.Join(fs.dir, "1.log"), vfs.WriteCategoryUnspecified)
		must.Succeed(t, err)
		_, err = f.Write(make([]byte, 100))
		whole, syncErr := f.SyncTo(50)
		if err = errors.Join(err, syncErr); err != nil || whole {
			t.Errorf("SyncTo says %v, %v, and nothing is on the disk", whole, err)
		}
		log := f.(*logFile)
		if got := log.synced.Load(); got != 0 {
			t.Errorf("%d bytes are said to be on the disk, and none is", got)
		}
		second()
		if got := log.synced.Load(); got != 100 {
			t.Errorf("%d bytes are said to be on the disk a second later, want 100", got)
		}
		_, err = f.Write(make([]byte, 50))
		folder, openErr := fs.OpenDir(fs.dir)
		must.Succeed(t, errors.Join(err, openErr, f.Close(), folder.Sync(), folder.Close()))
		info, err := fs.CrashClone(vfs.CrashCloneCfg{}).Stat(filepath.Join(fs.dir, "1.log"))
		if err != nil || info.Size() != 150 {
			t.Errorf("the closed log has %v (%v) on the disk, want 150 bytes", info, err)
		}
	})
}

// brokenFile fails to sync a number of times.
type brokenFile struct {
	vfs.File
	fails int
}

func (f *brokenFile) SyncData() error {
	if f.fails--; f.fails >= 0 {
		return errors.New("the disk is away")
	}
	return f.File.SyncData()
}

func TestFailedSyncIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, late := newLate(t)
		inner, err := fs.Create(filepath.Join(fs.dir, "1.log"), vfs.WriteCategoryUnspecified)
		must.Succeed(t, err)
		f := &logFile{File: &brokenFile{File: inner, fails: 2}, fs: late}
		if _, err := f.Write(make([]byte, 100)); err != nil || f.Sync() != nil {
			t.Fatal(err)
		}
		for n, want := range []int64{0, 0, 100} {
			if second(); f.synced.Load() != want {
				t.Errorf("after try %d, %d bytes are on the disk, want %d", n+1, f.synced.Load(), want)
			}
		}
		must.Succeed(t, f.Close())
	})
}

// powerStep is a step of a disk's life.
type powerStep struct {
	what  string
	bytes int // of the value that "write" writes
	// pages is how many of 100 unsynced pages are on the disk when the power fails.
	pages int
	seed  uint64
}

// Of the last second, any pages may have reached the disk. The folder opens, and holds
// what it held at some moment since the last sync.
func TestPowerFailureLeavesAPrefix(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) powerStep {
			return powerStep{
				what:  rapid.SampledFrom([]string{"write", "write", "write", "write", "second", "flush", "fail"}).Draw(rt, "step"),
				bytes: rapid.SampledFrom([]int{1, 100, 5_000, 40_000}).Draw(rt, "bytes"),
				pages: rapid.IntRange(0, 100).Draw(rt, "pages"), seed: rapid.Uint64().Draw(rt, "seed"),
			}
		}), 1, 30).Draw(rt, "steps")
		var err error
		synctest.Test(t, func(t *testing.T) { err = live(t, steps) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// live takes the steps on a new disk.
func live(t *testing.T, steps []powerStep) (err error) {
	fs := newPowerFS(t)
	d, err := fs.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	time.Sleep(syncEvery / 2)
	n, synced := 0, 0
	for _, s := range steps {
		switch s.what {
		case "write":
			if err := set(d, strconv.Itoa(n), strings.Repeat("x", s.bytes)); err != nil {
				return err
			}
			n++
		case "second":
			second()
			synced = n
		case "flush":
			if err := d.db.Flush(); err != nil {
				return err
			}
			synced = n
		case "fail":
			held, err := fs.fail(t, s.pages, s.seed).prefix(n)
			if err == nil && held < synced {
				err = fmt.Errorf("%d of %d writes are there, and %d were synced", held, n, synced)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// With Settings.Sync a write returns before it is on the disk, and Sync once all writes before it are. Of the
// others, any pages may be.
func TestSyncIsOnTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newPowerFS(t)
		fs.sync = true
		d, err := fs.open()
		must.Succeed(t, err)
		must.CloseAtEnd(t, d)
		random := rand.New(rand.NewPCG(7, 0))
		synced := 0
		for n := range 60 {
			must.Succeed(t, set(d, strconv.Itoa(n), strings.Repeat("x", random.IntN(9_000))))
			switch random.IntN(4) {
			case 0:
				must.Succeed(t, d.Sync())
				synced = n + 1
			case 1:
				must.Succeed(t, d.db.Flush()) // the next writes go to another log
				synced = n + 1
			}
			if n%3 > 0 {
				continue
			}
			if got, err := fs.fail(t, random.IntN(101), uint64(n)).prefix(n + 1); got < synced || err != nil {
				t.Fatalf("after a failure of the power, %d writes are there (%v), and %d were synced", got, err, synced)
			}
		}
		must.Succeed(t, set(d, "60", "x"))
		second() // nobody waits for it
		if got, err := fs.fail(t, 0, 0).prefix(61); got != 61 || err != nil {
			t.Errorf("a second later %d writes are there (%v), want 61", got, err)
		}
	})
}

func syncsLog(op errorfs.Op) bool {
	return isLog(op.Path) && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo)
}

// Who waits at the same time shares syncs of the disk.
func TestSyncsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newPowerFS(t)
		var syncs atomic.Int64
		held, release := atomic.Bool{}, make(chan bool)
		slow := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if syncsLog(op) && held.Load() {
				syncs.Add(1)
				<-release
			}
			return nil
		}))
		d, err := OpenWith(fs.dir, Settings{Sync: true, Files: slow}, joinLines, silent)
		must.Succeed(t, err)
		must.CloseAtEnd(t, d)
		held.Store(true)
		var writers sync.WaitGroup
		var succeeded atomic.Int64
		for n := range 100 {
			writers.Go(func() {
				must.Succeed(t, errors.Join(set(d, strconv.Itoa(n), "1"), d.Sync()))
				succeeded.Add(1)
			})
		}
		synctest.Wait()
		if n := succeeded.Load(); n != 0 {
			t.Errorf("%d writers have not waited for the disk", n)
		}
		close(release)
		writers.Wait()
		must.Succeed(t, d.Sync()) // nothing is to be done
		if n := syncs.Load(); n > 2 {
			t.Errorf("100 writers waited for %d syncs, want the one that the first began, and one for all others", n)
		}
	})
}

// Nobody can know what is on the disk after a sync that failed: the process ends, and nobody learns of a success.
func TestFailedSyncEndsTheProcess(t *testing.T) {
	fs := newPowerFS(t)
	var broken atomic.Bool
	faulty := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if syncsLog(op) && broken.Load() {
			return errors.New("the disk is away")
		}
		return nil
	}))
	d, err := OpenWith(fs.dir, Settings{Sync: true, Files: faulty}, joinLines, silent)
	must.Succeed(t, err)
	code := make(chan int, 1)
	exit = func(c int) { code <- c; select {} }
	defer func() { exit = os.Exit }()
	must.Succeed(t, errors.Join(set(d, "1", "1"), d.Sync(), set(d, "2", "1")))
	d.end() // of those whom nobody waits for: it would end the process of the tests
	broken.Store(true)
	ended := make(chan error, 1)
	go func() { ended <- d.Sync() }()
	select {
	case c := <-code:
		if c != 1 {
			t.Errorf("exit code %d, want 1", c)
		}
	case err := <-ended:
		t.Errorf("a sync that failed returned %v", err)
	}
}
