package localstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/localstore"
	"github.com/signet-io/signet/sinks/delta/log/logtest"
)

func TestStore(t *testing.T) {
	logtest.Run(t, func(t *testing.T) func() log.Store {
		dir := filepath.Join(t.TempDir(), "not yet", "there")
		return func() log.Store { return localstore.New(dir) }
	})
}

func TestStore_LeavesNoTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	s := localstore.New(dir)
	require.NoError(t, s.PutIfAbsent(t.Context(), log.CommitName(0), strings.NewReader("x")))
	require.Error(t, s.PutIfAbsent(t.Context(), log.CommitName(0), strings.NewReader("y")))
	require.NoError(t, s.ReplaceHint(t.Context(), nil, []byte("x")))
	require.Error(t, s.ReplaceHint(t.Context(), nil, []byte("y")))
	entries, err := os.ReadDir(filepath.Join(dir, log.Dir))
	require.NoError(t, err)
	require.Len(t, entries, 2)
	// What a crash left behind is no object.
	require.NoError(t, os.WriteFile(filepath.Join(dir, log.Dir, ".tmp-x"), []byte("half"), 0o600))
	infos, err := s.List(t.Context(), log.Dir, "")
	require.NoError(t, err)
	require.Len(t, infos, 2)
}
