package storage_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/catalog/storage/storagetest"
	"github.com/signet-io/signet/internal/objects/gcs"
	"github.com/signet-io/signet/internal/objects/objectstest"
	"github.com/signet-io/signet/internal/uri"
)

const googleHome = "gs://" + objectstest.Bucket + "/wh/table1"

func openGCS(t *testing.T) (*objectstest.Server, storage.Opener) {
	t.Helper()
	s := objectstest.StartGCS(t)
	who, err := gcs.NewIdentity(s.GCSProps(t))
	require.NoError(t, err)
	o, err := storage.NewOpener(storage.Root{Scheme: uri.GCS, Client: who.Client})
	require.NoError(t, err)
	return s, o
}

func TestGCS_Conformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storagetest.Env {
		s, o := openGCS(t)
		s.Pages(3, true)
		return storagetest.Env{Location: googleHome, Sibling: googleHome + "0", Open: o.Open, Remote: true}
	})
}

func TestGCS_LargeFiles(t *testing.T) { largeFiles(t, googleHome, second(openGCS(t))) }

func second[A, B any](_ A, b B) B { return b }

// largeFiles writes what is more than one part.
func largeFiles(t *testing.T, home string, o storage.Opener) {
	t.Helper()
	st, err := o.Open(t.Context(), home)
	require.NoError(t, err)
	body := make([]byte, 33<<20+17)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(body)
	info, err := st.PutIfAbsent(t.Context(), home+"/large", bytes.NewReader(body))
	require.NoError(t, err)
	require.EqualValues(t, len(body), info.Size)
	f, err := st.Open(t.Context(), home+"/large")
	require.NoError(t, err)
	got, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.True(t, bytes.Equal(body, got))
	_, err = st.PutIfAbsent(t.Context(), home+"/large", bytes.NewReader(body))
	require.ErrorIs(t, err, storage.ErrExists)
}

// One catalog may have tables in several stores; each location goes to the root of its scheme.
func TestOpener_ByScheme(t *testing.T) {
	s := objectstest.Start(t)
	g := objectstest.StartGCS(t)
	who, err := gcs.NewIdentity(g.GCSProps(t))
	require.NoError(t, err)
	o, err := storage.NewOpener(storage.Root{Props: s.Props()}, storage.Root{Scheme: uri.GCS, Client: who.Client})
	require.NoError(t, err)
	for scheme, server := range map[string]*objectstest.Server{"s3": s, "gs": g} {
		st, err := o.Open(t.Context(), scheme+"://"+objectstest.Bucket+"/wh")
		require.NoError(t, err)
		_, err = st.PutIfAbsent(t.Context(), scheme+"://"+objectstest.Bucket+"/wh/f", bytes.NewReader(nil))
		require.NoError(t, err)
		require.NotEmpty(t, server.Log(), scheme)
		require.Empty(t, append(s.Log(), g.Log()...), scheme)
	}
	_, err = o.Open(t.Context(), "abfss://c@account.dfs.core.windows.net/wh")
	require.ErrorIs(t, err, storage.ErrUnsupported)
	_, err = storage.NewOpener(storage.Root{Prefix: "gs://b/x"})
	require.ErrorIs(t, err, storage.ErrUnsupported)
}
