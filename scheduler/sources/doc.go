// Package sources turns what a statement reads, file names and patterns, into a list of pinned files.
//
// Invariants:
//   - A name that exists as it is written is that file, whatever characters it has; only then it is a pattern.
//   - Every file is resolved through symbolic links before it is checked against the rules, and it is the resolved name that is
//     pinned: what was checked is what is read.
//   - A pattern begins below a root, and passes by in silence what is denied; a name in a denied place is refused before it is looked
//     at. So no answer tells what there is outside the roots or in a denied place.
//   - Signet's own files and the kernel's file systems are never sources.
//   - The list is sorted by resolved name and has no duplicates; a file that changes after it was pinned is noticed by name.
package sources
