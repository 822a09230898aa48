package scheduler

import (
	"maps"
	"strings"

	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/sql"
)

// statementHash is the identity of a statement under an idempotency key. The directory belongs to it only where a file's name is relative:
// the same load may be sent again from elsewhere.
func statementHash(rec *journal.Job) string {
	dir := ""
	if sql.NamesRelativeFile(rec.SQL) {
		dir = rec.BaseDir
	}
	parts := []string{rec.SQL, rec.DefaultCatalog, rec.DefaultSchema, dir}
	if len(rec.Plan) > 0 {
		parts = append(parts, string(rec.Plan), rec.BaseDir)
	}
	return hashParts("statement", append(parts, flatten(meant(rec.Settings))...)...)
}

// meant are the settings that a statement's meaning depends on. Which run it is a part of is another with every retry.
func meant(settings map[string]string) map[string]string {
	out := maps.Clone(settings)
	maps.DeleteFunc(out, func(k, _ string) bool { return strings.HasPrefix(k, plan.SettingLineage) })
	return out
}

// otherStatement refuses a key that names another statement, and says what is different.
func otherStatement(have, sent *journal.Job) *jobFailure {
	what, hint := "which is another statement", "use a new key for a new statement; the text is compared exactly, white space and comments included"
	switch {
	case have.SQL != sent.SQL || sent.Kind == kindPlan:
	case have.Input != "" && sent.Input != "": // the same text over other rows
		what, hint = "which is another statement: an ingest of other columns, or of another number of rows", "use a new key for a new ingest"
	case have.DefaultCatalog != sent.DefaultCatalog || have.DefaultSchema != sent.DefaultSchema:
		what, hint = "which is the same text with another default catalog or schema", "send it with the same --catalog and --schema, or use a new key"
	case !maps.Equal(meant(have.Settings), meant(sent.Settings)):
		what, hint = "which is the same text with other settings", "send it with the same settings, or use a new key"
	default:
		what, hint = "which is the same text sent from the directory "+have.BaseDir, "its relative names mean other files here: send it from there, name files in full, or use a new key"
	}
	return fail(codeUser, hint, "the idempotency key %q names job %s, %s", sent.Key, have.ID, what)
}
