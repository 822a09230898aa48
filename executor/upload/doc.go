// Package upload puts finished data files where readers will find them.
//
// Invariants:
//
//   - A file appears under its final name whole and durable, or not at all: data is synced before the name exists, and the directories that
//     lead to it before Finish returns.
//   - Nothing is ever overwritten. A name that exists is an error: attempt ids are unique, so somebody else wrote it.
//   - A Writer creates files directly below its prefix and nowhere else.
//   - Errors name the directory; those that another executor might not meet (no space, no permission) are ResourceErrors.
package upload
