package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of a Landlock ruleset, by what they are for.
const (
	rightsRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// rightsOwn are those on the plugin's own directory: everything but device nodes.
	rightsOwn = rightsRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	rightsDevice = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	rightsFile   = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	rightsNet = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
)

// systemPaths is what programs need to run: libraries, interpreters, certificates, names. Nothing below /home, /root, /var, /srv, /tmp, /run,
// and of /etc only what holds no configuration of services.
var systemPaths = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store", "/proc", "/sys",
	"/etc/alternatives", "/etc/ca-certificates", "/etc/group", "/etc/host.conf", "/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf",
	"/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/passwd", "/etc/pki/tls", "/etc/pki/ca-trust",
	"/etc/protocols", "/etc/resolv.conf", "/etc/services", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/timezone",
}

var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// landlockABI is the kernel's version of Landlock, 0 where there is none.
var landlockABI = sync.OnceValue(func() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
})

// confine takes rights from the calling thread and from all that it will start, for ever: files are limited to the system's and the
// plugin's own, TCP is gone, and by Landlock's rules so is every look into a process that is not confined likewise. The caller's
// goroutine must stay locked to its thread until it ends.
func confine(c *Config, run *runDir) error {
	abi := landlockABI()
	if abi == 0 || !c.Isolation.confined() {
		return nil
	}
	fd, fsRights, err := newRuleset(abi)
	if err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	defer unix.Close(fd)
	rules := map[string]uint64{run.Path: rightsOwn, run.sock: rightsOwn, filepath.Dir(c.Path): rightsRead}
	for _, p := range append(systemPaths, c.AllowRead...) {
		rules[p] |= rightsRead
	}
	for _, p := range devices {
		rules[p] = rightsDevice
	}
	for p, rights := range rules {
		if err := allow(fd, p, rights&fsRights); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("landlock: %s: %w", p, err)
		}
	}
	if err := dropCapabilities(); err != nil && c.Isolation == IsolationLandlock {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(fd), 0, 0); errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	return nil
}

// dropCapabilities empties the bounding set of the calling thread, so that what it execs has no capability even as root. With one, Landlock
// does not hold: CAP_PERFMON reads any memory.
func dropCapabilities() error {
	// Ambient ones survive an exec; a kernel that does not know them has none.
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if set, _ := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); set != 1 {
			continue // not there, or not known to this kernel
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			if os.Geteuid() != 0 {
				return nil // it has none to pass on: exec takes them from whoever is not root
			}
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	return nil
}

// newRuleset takes as much as the kernel can. Sockets in the file system, a container engine's for instance, are the newest right.
func newRuleset(abi int) (fd int, fsRights uint64, err error) {
	fsRights, netRights := handled(abi)
	for _, extra := range []uint64{unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX, 0} {
		attr := unix.LandlockRulesetAttr{Handled_access_fs: fsRights | extra, Handled_access_net: netRights}
		r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
		switch errno {
		case 0:
			return int(r), fsRights | extra, nil
		case unix.EINVAL:
			err = errno
		default:
			return -1, 0, errno
		}
	}
	return -1, 0, err
}

// handled are the rights that a kernel can take away.
func handled(abi int) (fsRights, netRights uint64) {
	fsRights = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1 // the first version ends with it
	if abi >= 2 {
		fsRights |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		fsRights |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 4 {
		netRights = rightsNet
	}
	if abi >= 5 {
		fsRights |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return fsRights, netRights
}

// allow adds a rule for a file or a directory with all below it.
func allow(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
