// Package redact keeps secrets out of what people see: logs, event logs, REST answers, traces (T7).
//
// Invariants:
//   - A value that was added never leaves Text, Settings or the log handler, in whatever text it stands.
//   - A setting whose name says that it is secret is shown by name only, whatever its value.
//   - Short values are not searched for: taking out every "a" would hide nothing and spoil everything.
package redact
