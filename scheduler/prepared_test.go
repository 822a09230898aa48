package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Of those who find a table at metadata that no spec is remembered of, one asks the sink; the others hear when it has.
func TestPrepared_OneAsksForAll(t *testing.T) {
	p := &prepared{}
	others, asked := p.ask("t")
	require.Nil(t, others, "the first asks")
	second, none := p.ask("t")
	require.NotNil(t, second)
	require.Nil(t, none)
	third, _ := p.ask("t")
	elsewhere, done := p.ask("u")
	require.Nil(t, elsewhere, "another table, or the same one at other metadata")
	done()
	select {
	case <-second:
		require.Fail(t, "it has not been asked yet")
	default:
	}
	asked()
	<-second
	<-third
	again, asked := p.ask("t")
	require.Nil(t, again, "whether it was remembered or not: the next may ask")
	asked()
	require.Empty(t, p.asking)
}
