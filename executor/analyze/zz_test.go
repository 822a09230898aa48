package analyze

import (
	"fmt"
	"os"
	"testing"
	"time"
	"context"

	"github.com/signet-io/signet/executor/duckdb"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/stretchr/testify/require"
)

func TestZZ(t *testing.T) {
	dir := t.TempDir()
	list := "range i"
	for c := 0; c < 20; c++ { list += fmt.Sprintf(", i * %d AS c%d", c, c) }
	list = list[len("range i, "):]
	write(t, dir, "COPY (SELECT "+list+" FROM range(1000) t(i)) TO '$DIR/f0.parquet' (ROW_GROUP_SIZE 500)")
	b, _ := os.ReadFile(dir + "/f0.parquet")
	for _, n := range []int{100, 2000} {
		var fs []*planv1.PinnedFile
		for i := 0; i < n; i++ {
			p := fmt.Sprintf("%s/f%d.parquet", dir, i)
			os.WriteFile(p, b, 0o644)
			st, _ := os.Stat(p)
			fs = append(fs, &planv1.PinnedFile{Path: p, SizeBytes: st.Size(), MtimeNanos: st.ModTime().UnixNano()})
		}
		src := &planv1.Source{View: "signet_source_1", Kind: &planv1.Source_File{File: &planv1.FileSource{Function: "read_parquet", Files: fs}}}
		s := time.Now()
		out := ok(t, "SELECT * FROM t", src)
		fmt.Println(n, "analyze", time.Since(s), len(out.Stats[0].Files), out.RowWise)
		s = time.Now()
		a := &analysis{ctx: context.Background(), req: req("x")}
		inst, err := testPool.Open(a.ctx, duckdb.Access{ReadFiles: duckdb.FilesOf([]*planv1.Source{src})})
		require.NoError(t, err)
		fmt.Println("open", time.Since(s)); s = time.Now()
		require.NoError(t, inst.CheckFiles(a.ctx, src))
		fmt.Println("check", time.Since(s)); s = time.Now()
		require.NoError(t, inst.BindSources(a.ctx, []*planv1.Source{src}))
		fmt.Println("bind", time.Since(s)); s = time.Now()
		_, err = inst.ParquetStats(a.ctx, duckdb.FilesOf([]*planv1.Source{src}))
		require.NoError(t, err)
		fmt.Println("stats", time.Since(s)); s = time.Now()
		_, err = inst.Conn().ExecContext(a.ctx, "SELECT count(c3+c4) FROM signet_source_1")
		fmt.Println("run", time.Since(s), err); s = time.Now()
		ts := &planv1.Source{View: "tt", Kind: &planv1.Source_Table{Table: &planv1.TableScan{Files: fs, Schema: &planv1.Schema{Fields: []*planv1.Field{{Name: "c3", Type: &planv1.Type{Kind: 5}}}}}}}
		require.NoError(t, inst.BindSources(a.ctx, []*planv1.Source{ts}))
		fmt.Println("bind table", time.Since(s)); s = time.Now()
		inst.Close()
	}
}
