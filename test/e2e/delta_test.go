package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

func deltaCatalog(root string) string {
	return "  dl: {type: delta, root: 'file://" + root + "'}\n"
}

func newDelta(t *testing.T) (*harness.Cluster, string) {
	root := t.TempDir()
	return harness.New(t, harness.Options{Executors: 1, CatalogConfig: deltaCatalog(root)}), root
}

var deltaFormat = storageFormat{catalog: "dl", config: deltaCatalog, log: deltaLog, logDir: "_delta_log"}

// deltaLog reads the commits of a Delta log, with nothing of Signet's.
func deltaLog(t *testing.T, dir string) (out []storageCommit) {
	t.Helper()
	for {
		b, err := os.ReadFile(filepath.Join(dir, "_delta_log", fmt.Sprintf("%020d.json", len(out))))
		if errors.Is(err, fs.ErrNotExist) {
			return out
		}
		require.NoError(t, err)
		c := storageCommit{}
		lines := bufio.NewScanner(bytes.NewReader(b))
		lines.Buffer(nil, len(b)+1)
		for lines.Scan() {
			var a struct {
				Add, Remove *struct{ Path string }
				Txn         *struct{ AppID string }
			}
			require.NoError(t, json.Unmarshal(lines.Bytes(), &a))
			for list, file := range map[*[]string]*struct{ Path string }{&c.add: a.Add, &c.remove: a.Remove} {
				if file == nil {
					continue
				}
				name, err := url.PathUnescape(file.Path)
				require.NoError(t, err)
				*list = append(*list, filepath.Join(dir, name))
			}
			if a.Txn != nil {
				c.markers = append(c.markers, strings.TrimPrefix(a.Txn.AppID, "signet:"))
			}
		}
		require.NoError(t, lines.Err())
		out = append(out, c)
	}
}

func TestDelta_EveryStatement(t *testing.T) {
	t.Parallel()
	c, _ := newDelta(t)
	everyStatement(t, c, "dl", "CREATE OR REPLACE TABLE AS SELECT")
}

// Wherever somebody dies, the Delta log has the statement once, and no file is left that it does not name.
func TestCrashDelta_Scheduler(t *testing.T) { deltaFormat.crashes(t, scheduler, storageCrashes) }

func TestCrashDelta_Recovery(t *testing.T) { deltaFormat.crashes(t, scheduler, storageRecoveries) }

func TestCrashDelta_Statements(t *testing.T) { deltaFormat.crashes(t, scheduler, storageElsewhere()) }
func TestCrashDelta_Plugin(t *testing.T)     { deltaFormat.crashes(t, plugin, storagePlugins) }
