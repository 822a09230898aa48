package sdk

import (
	"crypto/sha256"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

// script makes the messages of manifests with so many files each, one or two to a chunk.
func script(sizes []int) []*sinkv1.StageRequest {
	var out []*sinkv1.StageRequest
	chunk := func(c *planv1.ManifestChunk) {
		out = append(out, &sinkv1.StageRequest{Part: &sinkv1.StageRequest_Manifest{Manifest: c}})
	}
	all := tally{}
	for task, n := range sizes {
		chunk(&planv1.ManifestChunk{Part: &planv1.ManifestChunk_Header{Header: &planv1.ManifestHeader{Task: int32(task)}}})
		sum := sha256.New()
		for f := 0; f < n; f += 2 {
			files := &planv1.DataFiles{}
			for i := f; i < min(f+2, n); i++ {
				files.Files = append(files.Files, &planv1.DataFile{Path: fmt.Sprintf("%d-%d", task, i), RecordCount: 3, SizeBytes: 5})
			}
			raw, _ := proto.Marshal(files)
			sum.Write(raw)
			chunk(&planv1.ManifestChunk{Part: &planv1.ManifestChunk_Files{Files: raw}})
		}
		one := tally{Files: int64(n), Rows: int64(3 * n), Bytes: int64(5 * n)}
		all.add(one)
		chunk(&planv1.ManifestChunk{Part: &planv1.ManifestChunk_Trailer{Trailer: &planv1.ManifestTrailer{
			Files: one.Files, Rows: one.Rows, Bytes: one.Bytes, Sha256: sum.Sum(nil),
		}}})
	}
	return append(out, &sinkv1.StageRequest{Part: &sinkv1.StageRequest_Trailer{Trailer: &sinkv1.StageTrailer{
		Manifests: int64(len(sizes)), Totals: &sinkv1.Totals{Files: all.Files, Rows: all.Rows, Bytes: all.Bytes},
	}}})
}

func source(msgs []*sinkv1.StageRequest) *ManifestSource {
	return &ManifestSource{recv: func() (*sinkv1.StageRequest, error) {
		if len(msgs) == 0 {
			return nil, io.EOF
		}
		m := msgs[0]
		msgs = msgs[1:]
		return m, nil
	}}
}

// read takes everything and gives the paths.
func read(s *ManifestSource) (paths []string, err error) {
	for m, err := range s.All() {
		if err != nil {
			return nil, err
		}
		for f, err := range m.Files() {
			if err != nil {
				return nil, err
			}
			paths = append(paths, f.GetPath())
		}
		if m.Trailer() == nil {
			return nil, fmt.Errorf("no trailer after the files")
		}
	}
	return paths, nil
}

func TestManifestSource_ReadsEverythingOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 5).Draw(t, "sizes")
		var want []string
		for task, n := range sizes {
			for i := range n {
				want = append(want, fmt.Sprintf("%d-%d", task, i))
			}
		}
		s := source(script(sizes))
		got, err := read(s)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.EqualValues(t, len(want), s.Totals().GetFiles())
		_, err = s.Next()
		require.Equal(t, io.EOF, err)
	})
}

// S66: a stream from which a message was taken, doubled or swapped is refused; a chunk can not be lost silently.
func TestManifestSource_RefusesEveryEdit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		msgs := script(rapid.SliceOfN(rapid.IntRange(1, 5), 1, 4).Draw(t, "sizes"))
		i := rapid.IntRange(0, len(msgs)-1).Draw(t, "at")
		switch rapid.SampledFrom([]string{"drop", "double", "cut"}).Draw(t, "edit") {
		case "drop":
			msgs = append(msgs[:i:i], msgs[i+1:]...)
		case "double":
			if i == len(msgs)-1 {
				t.Skip("what follows the trailer is not read")
			}
			msgs = append(msgs[:i+1:i+1], msgs[i:]...)
		case "cut":
			msgs = msgs[:i]
		}
		_, err := read(source(msgs))
		require.ErrorIs(t, err, ErrManifest)
	})
}

func TestManifestSource_UnreadFilesAreADefect(t *testing.T) {
	s := source(script([]int{4, 1}))
	m, err := s.Next()
	require.NoError(t, err)
	for range m.Files() {
		break
	}
	_, err = s.Next()
	require.ErrorIs(t, err, ErrManifest)
	s = source(script([]int{1, 1}))
	_, err = s.Next()
	require.NoError(t, err)
	_, err = s.Next()
	require.ErrorIs(t, err, ErrManifest, "a manifest that was not looked at")
	require.Error(t, staged(&sinkv1.StageResponse{}, source(script([]int{1}))))
	require.Error(t, staged(&sinkv1.StageResponse{Totals: &sinkv1.Totals{Files: 1}}, source(script(nil))))
	require.Error(t, staged(nil, source(script(nil))))
	require.NoError(t, staged(&sinkv1.StageResponse{}, source(script(nil))))
}
