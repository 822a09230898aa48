package host

import "sync"

// Isolation is how a plugin's process is kept from the host's. Every level but IsolationUndumpable and IsolationNone also confines the
// plugin's files with Landlock, where the kernel has it: it reads the system's libraries, the directory of its own file and
// Config.AllowRead, and writes only its private directory.
type Isolation int

const (
	// IsolationAuto takes what DetectIsolation found.
	IsolationAuto Isolation = iota
	// IsolationFull: own user, network, process and IPC namespaces. The plugin can neither read the host's memory, nor reach a network, nor
	// see or signal another process, and the kernel ends all its processes together.
	IsolationFull
	// IsolationUserNet: own user and network namespaces.
	IsolationUserNet
	// IsolationLandlock: no namespaces, as in most containers. The plugin cannot read the host's memory, nor its files, nor use TCP; UDP and
	// signals remain.
	IsolationLandlock
	// IsolationUndumpable: the host, not being root, forbids its own user to look into its memory. The plugin has the network and the files.
	IsolationUndumpable
	// IsolationNone: plugins are trusted code.
	IsolationNone
)

func (i Isolation) String() string {
	switch i {
	case IsolationAuto:
		return "auto"
	case IsolationFull:
		return "namespaces"
	case IsolationUserNet:
		return "user and network namespaces"
	case IsolationLandlock:
		return "landlock"
	case IsolationUndumpable:
		return "undumpable host"
	}
	return "none"
}

// network tells whether the plugin can reach a network.
func (i Isolation) network() bool { return i == IsolationUndumpable || i == IsolationNone }

// confined tells whether the plugin's files are limited where the kernel can do that.
func (i Isolation) confined() bool { return !i.network() }

// DetectIsolation tries once, for real, what this system allows, and says it in a line for the log.
func DetectIsolation() (Isolation, string) {
	d := detected()
	return d.level, d.line
}

type detection struct {
	level Isolation
	line  string
}

var detected = sync.OnceValue(detect)
