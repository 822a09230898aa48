package catalogs_test

import (
	"testing"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/test/servers/nessie"
	"github.com/signet-io/signet/test/servers/weed"
)

func TestSeaweedFS_Transactions(t *testing.T) {
	free := []string{"transactions-0", "transactions-1", "transactions-2"}
	s := weed.Start(t, free...)
	catalogtest.RunTransactions(t, weedQuirks, false, func(t *testing.T) catalog.Catalog {
		bucket := free[0]
		free = free[1:]
		return open(t, weedOptions(s, "s3://"+bucket), s, false)
	})
}

func TestNessie_Transactions(t *testing.T) {
	store := weed.Start(t)
	makeBucket(t, store, lake)
	s := nessie.Start(t, store, lake)
	catalogtest.RunTransactions(t, nessieQuirks, false, func(t *testing.T) catalog.Catalog {
		return open(t, nessieOptions(s, s.Branch(t)), store, false)
	})
}
