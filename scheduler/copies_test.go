package scheduler

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/uri"
	"github.com/signet-io/signet/scheduler/sources"
)

func storeAt(endpoint, key string) objects.Props {
	return objects.Props{objects.Endpoint: endpoint, objects.AccessKeyID: key, objects.SecretKey: "canary-secret"}
}

// copyingReport is a write of a table in a store, by a task that copies from files of that store.
func copyingReport(t *testing.T, source *planv1.Source) (*report, *executorv1.AttemptRef) {
	t.Helper()
	r, _, ref := remoteReport(t)
	s, own := r.w.s, storeAt("http://127.0.0.1:1", "own-key")
	r.w.target.entry.stores = storage.OpenerFunc(func(_ context.Context, location string) (storage.Store, error) {
		at, err := uri.Parse(location)
		if err != nil {
			return nil, err
		}
		client, err := objects.NewS3(own, at.Authority, objects.Static(own))
		if err != nil {
			return nil, err
		}
		return storage.NewRemote(client, location)
	})
	var remote []sources.Remote
	for prefix, props := range map[string]objects.Props{
		"s3://raw/in": own, "s3://elsewhere/": storeAt("http://127.0.0.1:2", "own-key"), "s3://keys/": storeAt("http://127.0.0.1:1", "other-key"),
	} {
		remote = append(remote, sources.Remote{Prefix: prefix, Open: func(bucket string) (objects.Client, error) {
			return objects.NewS3(props, bucket, objects.Static(props))
		}})
	}
	var err error
	s.sources, err = sources.New(sources.Rules{Remote: append(remote, sources.Remote{Prefix: "https://data.example.org/pub"})})
	require.NoError(t, err)
	a := s.attempt(r.attempt)
	a.task.Sources = []*planv1.Source{source}
	w := a.task.GetWrite()
	w.Splice, w.Prefix = true, attemptPrefix(r.w.spec, ref.JobId, 0, 0, ref.AttemptId)
	s.setCopies(t.Context(), r.w.target, a.task)
	return r, ref
}

func filesAt(uris ...string) *planv1.Source {
	f := &planv1.FileSource{}
	for _, u := range uris {
		f.Files = append(f.Files, &planv1.PinnedFile{Uri: u, SizeBytes: 1000, Etag: `"pinned"`})
	}
	return &planv1.Source{Kind: &planv1.Source_File{File: f}}
}

func tableAt(u string) *planv1.Source {
	return &planv1.Source{Kind: &planv1.Source_Table{Table: &planv1.TableScan{Catalog: "lake", Files: []*planv1.PinnedFile{
		{Uri: u, SizeBytes: 1000, Deletes: []*planv1.DeleteFile{{Uri: lakeData + "/in.puffin"}}},
	}}}}
}

func TestCopies_WithinOneStore(t *testing.T) {
	for u, why := range map[string]string{
		"s3://raw/in/x.parquet":                  "",
		"s3://elsewhere/x.parquet":               "its files are not in the same store: endpoints or regions differ",
		"s3://keys/x.parquet":                    "its files are not in the same store: it is read with other keys than are written with",
		"https://data.example.org/pub/x.parquet": "its files are not in the same store: it is on a web server",
		"s3://raw/was-listed/x.parquet":          "its files are in a store that copies nothing for this table",
	} {
		r, _ := copyingReport(t, filesAt("s3://raw/in/first.parquet", u))
		w := r.w.s.attempt(r.attempt).task.GetWrite()
		require.Equal(t, why == "", w.GetCopies(), u)
		require.Equal(t, why, w.GetNoCopies(), u)
	}
	r, _ := copyingReport(t, tableAt(lakeData+"/in.parquet"))
	require.True(t, r.w.s.attempt(r.attempt).task.GetWrite().GetCopies())
	r, _ = copyingReport(t, &planv1.Source{Kind: &planv1.Source_File{File: &planv1.FileSource{Files: []*planv1.PinnedFile{{Path: "/x.parquet"}}}}})
	w := r.w.s.attempt(r.attempt).task.GetWrite()
	require.False(t, w.GetCopies())
	require.Empty(t, w.GetNoCopies(), "nobody expects it")
}

// J20: an attempt copies bytes of its own task's files, in the versions that were planned for, below its own prefix.
func TestAccess_Copies_J20(t *testing.T) {
	r, ref := copyingReport(t, filesAt("s3://raw/in/a b.parquet"))
	s := r.w.s
	ask := func(name string, c *executorv1.CopyRange) *executorv1.Access {
		return s.Access(t.Context(), "x", &executorv1.AccessRequest{Attempt: ref, Puts: []*executorv1.PutRequest{{Name: name, UploadId: "u", Part: 2, Copy: c}}}, nil)
	}
	out := ask("x.parquet", &executorv1.CopyRange{Uri: "s3://raw/in/a b.parquet", Offset: 10, SizeBytes: 990})
	require.Nil(t, out.GetError())
	put := out.GetPuts()[0]
	require.Equal(t, "raw/in/a%20b.parquet", put.GetHeaders()["X-Amz-Copy-Source"])
	require.Equal(t, "bytes=10-999", put.GetHeaders()["X-Amz-Copy-Source-Range"])
	require.Equal(t, `"pinned"`, put.GetHeaders()["X-Amz-Copy-Source-If-Match"])
	require.Contains(t, put.GetUrl(), "x-amz-copy-source%3Bx-amz-copy-source-if-match%3Bx-amz-copy-source-range")
	prefix := strings.TrimPrefix(attemptPrefix(r.w.spec, ref.JobId, 0, 0, ref.AttemptId), "s3://lake/")
	require.Contains(t, put.GetUrl(), "http://127.0.0.1:1/lake/"+prefix+"/x.parquet?")
	require.NotContains(t, out.String(), "canary-secret")

	in := func(u string, off, n int64) *executorv1.CopyRange {
		return &executorv1.CopyRange{Uri: u, Offset: off, SizeBytes: n}
	}
	refused := func(what, name string, c *executorv1.CopyRange) {
		t.Helper()
		out := ask(name, c)
		require.Equal(t, planv1.ErrorClass_ERROR_CLASS_INTERNAL, out.GetError().GetClass(), what)
		require.Empty(t, out.GetPuts(), what)
	}
	refused("another source", "x", in("s3://raw/in/other.parquet", 0, 1))
	refused("the table's metadata", "x", in("s3://lake/wh/s/t/metadata/v1.metadata.json", 0, 1))
	refused("no source", "x", in("", 0, 1))
	refused("beyond its end", "x", in("s3://raw/in/a b.parquet", 999, 2))
	refused("before its begin", "x", in("s3://raw/in/a b.parquet", -1, 2))
	refused("nothing of it", "x", in("s3://raw/in/a b.parquet", 5, 0))
	refused("a range that overflows", "x", in("s3://raw/in/a b.parquet", 5, 1<<63-1))
	refused("a name that leads out", "../x", in("s3://raw/in/a b.parquet", 0, 1))

	s.attempt(r.attempt).task.GetSources()[0].GetFile().Files = filesAt("s3://raw/other/x.parquet").GetFile().Files // below no prefix, any more
	refused("what is not listed any more", "x", in("s3://raw/other/x.parquet", 0, 1))
	s.attempt(r.attempt).task.Sources = []*planv1.Source{filesAt("s3://keys/x.parquet")}
	out = ask("x", in("s3://keys/x.parquet", 0, 1))
	require.NotNil(t, out.GetError(), "other keys")
	s.attempt(r.attempt).task.Sources = []*planv1.Source{filesAt("s3://raw/in/x.parquet")}
	require.Nil(t, ask("x", in("s3://raw/in/x.parquet", 0, 1)).GetError())
	s.attempt(r.attempt).task.GetWrite().Copies = false // as after a restart
	require.Nil(t, ask("x", in("s3://raw/in/x.parquet", 0, 1)).GetError())
	s.attempt(r.attempt).task.GetWrite().Splice = false
	refused("a task that does not copy", "x", in("s3://raw/in/x.parquet", 0, 1))

	r, ref = copyingReport(t, tableAt(lakeData+"/in.parquet"))
	s = r.w.s
	require.Nil(t, ask("x", in(lakeData+"/in.parquet", 0, 1000)).GetError())
	refused("a delete file", "x", in(lakeData+"/in.puffin", 0, 1))
	refused("another data file", "x", in(lakeData+"/other.parquet", 0, 1))
}
