package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/scheduler/sources"
)

// J20: an attempt gets reads of its own sources in object stores and on web servers, with the keys of their prefixes, and of no others that its principal could name.
func TestAccess_OfSources_J20(t *testing.T) {
	r, store, ref := remoteReport(t)
	s := r.w.s
	var err error
	s.sources, err = sources.New(sources.Rules{Remote: []sources.Remote{
		{Prefix: "s3://raw/2026", Open: func(bucket string) (objects.Client, error) {
			props := objects.Props{objects.Endpoint: "http://127.0.0.1:1", objects.AccessKeyID: "source-key", objects.SecretKey: "canary-secret"}
			return objects.NewS3(props, bucket, objects.Static(props))
		}},
		{Prefix: "https://data.example.org/pub"},
	}})
	require.NoError(t, err)
	a := s.attempt(r.attempt)
	a.task.Sources = append(a.task.Sources, &planv1.Source{Kind: &planv1.Source_File{File: &planv1.FileSource{Files: []*planv1.PinnedFile{
		{Uri: "s3://raw/2026/a b%2B+.csv"}, {Uri: "https://data.example.org/pub/a%20b.csv"}, {Uri: "s3://raw/2025/was-listed.csv"}, {Path: "/local.csv"},
	}}}})
	ask := func(uris ...string) *executorv1.Access {
		return s.Access(t.Context(), "x", &executorv1.AccessRequest{Attempt: ref, Reads: uris}, nil)
	}
	out := ask("https://data.example.org/pub/a%20b.csv", lakeData+"/in.parquet", "s3://raw/2026/a b%2B+.csv")
	require.Nil(t, out.GetError())
	reads := out.GetReads()
	require.Len(t, reads, 3)
	require.Equal(t, "https://data.example.org/pub/a%20b.csv", reads[0].GetUrl())
	require.Empty(t, reads[0].GetHeaders())
	require.Equal(t, []string{"GET " + lakeData + "/in.parquet"}, store.signed)
	require.Equal(t, lakeData+"/in.parquet", reads[1].GetUri())
	require.Contains(t, reads[2].GetUrl(), "http://127.0.0.1:1/raw/2026/a%20b%252B%2B.csv?")
	require.Contains(t, reads[2].GetUrl(), "source-key%2F")
	require.NotContains(t, out.String(), "canary-secret")
	for _, u := range []string{
		"s3://raw/2026/other.csv", "https://data.example.org/pub/other.csv", "s3://raw/2025/was-listed.csv", "/local.csv", "s3://raw/2026/a b++.csv", "https://data.example.org/pub/a b.csv", "",
	} {
		out := ask(u)
		require.Equal(t, planv1.ErrorClass_ERROR_CLASS_INTERNAL, out.GetError().GetClass(), u)
		require.Empty(t, out.GetReads(), u)
	}
}
