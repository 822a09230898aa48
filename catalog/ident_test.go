package catalog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
)

func TestIdent_StringQuotesWhatNeedsIt(t *testing.T) {
	for want, id := range map[string]catalog.Ident{
		`demo.t_1`:      {"demo", "t_1"},
		`a."b.c".d`:     {"a", "b.c", "d"},
		`"a b"."1x".""`: {"a b", "1x", ""},
		`"a""b"."ü"`:    {`a"b`, "ü"},
		`Demo.T`:        {"Demo", "T"},
		``:              nil,
	} {
		assert.Equal(t, want, id.String())
	}
	assert.Equal(t, []string{"a", "b"}, catalog.Ident{"a", "b", "t"}.Namespace())
	assert.Equal(t, "t", catalog.Ident{"a", "b", "t"}.Table())
	assert.Nil(t, catalog.Ident(nil).Namespace())
	assert.Empty(t, catalog.Ident(nil).Table())
}

func TestIdent_Validate(t *testing.T) {
	for _, id := range []catalog.Ident{{"a", "t"}, {"a b", "..", "/"}, {"ü", "日本"}, {"a", strings.Repeat("x", 80)}} {
		require.NoError(t, id.Validate(), "%q", id)
	}
	for _, id := range []catalog.Ident{nil, {}, {"t"}, {"", "t"}, {"a", ""}, {"a", "\x00"}, {"a", "\xff"}, {"a", strings.Repeat("x", 81)}, {strings.Repeat("x", 81), "t"}} {
		require.ErrorIs(t, id.Validate(), catalog.ErrPermanent, "%q", id)
	}
	require.ErrorIs(t, catalog.ValidateNamespace(nil), catalog.ErrPermanent)
}
