package broker_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/scheduler/broker"
)

// A lease of a write that is staged adds a snapshot with its wap.id and moves no branch; another lease stages nothing.
func TestVet_StagedWrites(t *testing.T) {
	unref := func(b *built) {
		b.upds = slices.DeleteFunc(b.upds, func(u map[string]any) bool { return u["action"] == "set-snapshot-ref" })
	}
	for name, tc := range map[string]struct {
		wap   string
		spoil func(*built)
		want  string
	}{
		"as it should be":             {"x", func(b *built) { unref(b); b.summary()["wap.id"] = "x" }, ""},
		"a branch gets it":            {"x", func(b *built) { b.summary()["wap.id"] = "x" }, "no branch gets its snapshot"},
		"without its id":              {"x", unref, `summary wap.id is "": want "x"`},
		"with another id":             {"x", func(b *built) { unref(b); b.summary()["wap.id"] = "y" }, `want "x"`},
		"as if it published":          {"x", func(b *built) { unref(b); b.summary()["wap.id"], b.summary()["published-wap-id"] = "x", "w" }, "published-wap-id"},
		"staged by another lease":     {"", func(b *built) { unref(b); b.summary()["wap.id"] = "x" }, "one set-snapshot-ref"},
		"an id in a write to main":    {"", func(b *built) { b.summary()["wap.id"] = "x" }, `want ""`},
		"a source in a write to main": {"", func(b *built) { b.summary()["source-snapshot-id"] = "5" }, "source-snapshot-id"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.createTable()
			j := b.job(func(s *broker.LeaseSpec) { s.WapID = tc.wap })
			l, err := j.sink.load()
			require.NoError(t, err)
			made, err := j.sink.build(l)
			require.NoError(t, err)
			tc.spoil(made)
			before := b.load()
			_, err = j.sink.sendBuilt(made)
			now := b.load()
			if tc.want != "" {
				requireRefusal(t, permanent, err, tc.want)
				require.Equal(t, before.MetadataLocation, now.MetadataLocation)
				return
			}
			require.NoError(t, err)
			require.Nil(t, now.Metadata.CurrentSnapshot())
			require.NotNil(t, now.Metadata.SnapshotByID(made.id))
		})
	}
}
