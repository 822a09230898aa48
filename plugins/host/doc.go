// Package host starts sink plugins, talks to them, and ends them. It is the only place that runs foreign code.
//
// Invariants:
//   - The bytes that run are the bytes that were hashed, and their SHA-256 is the one in plugins.lock. A plugin that is not locked does not
//     run, except with Config.Unlocked.
//   - A plugin inherits nothing: its environment is an allow-list, its standard input is empty, no file descriptor of the host is open in it.
//   - It starts in its own user, network, process and IPC namespaces, without any capability, and confined by Landlock, where the system allows
//     that (see Isolation): it can neither read the host's memory nor reach a network nor signal another process, and of the file system it
//     has the system's programs to read and one private directory to write.
//   - No process of a plugin outlives it: the whole group is killed when its first process ends, when it is stopped, and, by the kernel, when
//     the host dies, however it dies.
//   - Nothing that a plugin writes to its standard streams can crash, block or flood the host.
//   - Every call has a deadline. An error of a call or a start is an *Error: it names the plugin and its file and says what to do.
//   - A stop first refuses new calls, waits for the running ones, then asks, then kills.
//   - The package knows no table format.
package host
