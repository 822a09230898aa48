// Package config reads the configuration of a scheduler: one YAML file, then SIGNET_* variables, then flags.
//
// Invariants:
//   - A Config that Load returned is complete and valid: defaults are filled in, paths are absolute, sizes and durations parsed.
//   - Every error names the key, the value and the fix. Unknown keys are refused, with the nearest known one.
//   - Secrets are references to a file or to a variable. They are read when they are used, never kept in the Config, and a Secret
//     prints as [redacted] in every formatting.
//   - A listener that others can reach demands TLS, a join token and client tokens.
package config
