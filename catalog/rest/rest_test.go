package rest_test

import (
	"testing"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
)

func TestServer_Conformance(t *testing.T) {
	catalogtest.RunWith(t, catalogtest.Quirks{StepNames: true}, func(t *testing.T) catalog.Catalog {
		s := newServer(t)
		s.page = 3
		return s.open(t, s.url)
	})
}

func TestServer_Transactions(t *testing.T) {
	catalogtest.RunTransactions(t, catalogtest.Quirks{}, false, func(t *testing.T) catalog.Catalog {
		s := newServer(t)
		return s.open(t, s.url)
	})
}
