package catalogs_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/catalog/rest"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/test/servers/nessie"
	"github.com/signet-io/signet/test/servers/weed"
)

// lake is the bucket of Nessie's tables.
const lake = "lake"

// stores opens every place of a store with its own keys.
func stores(t testing.TB, store *weed.Server) storage.Opener {
	t.Helper()
	props := objects.Props{objects.Endpoint: store.Endpoint, objects.AccessKeyID: store.AccessKey, objects.SecretKey: store.SecretKey}
	o, err := storage.NewOpener(storage.Root{Props: props, Source: objects.Static(props)})
	require.NoError(t, err)
	return o
}

func makeBucket(t testing.TB, store *weed.Server, name string) {
	t.Helper()
	c := s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(store.Endpoint), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(store.AccessKey, store.SecretKey, ""),
	})
	_, err := c.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(name)})
	require.NoError(t, err)
}

// Quirks of servers.
var (
	weedQuirks = catalogtest.Quirks{
		StepNames: true, NoSlashes: true, FlatDots: true, DotsAlias: true, PlainNames: true, LooseLists: true,
		ParentsFirst: true, // it takes others, and does not list them
		OwnFiles:     true, OddFiles: true, FreePlaces: true, OwnPlaces: true, Purges: true, NoFollows: true, EmptySchema: true, Unsure: true,
	}
	nessieQuirks = catalogtest.Quirks{
		StepNames: true, NoSlashes: true, FlatDots: true, DotsAlias: true, ParentsFirst: true, PlainNames: true, LooseLists: true,
		OwnFiles: true, OddFiles: true, FreePlaces: true, OwnPlaces: true, NoChosenPlaces: true, NoFollows: true, OnlyV2: true, CurrentOnly: true,
	}
)

// open connects a client with the operator's keys, or with those that the server gives.
func open(t testing.TB, o rest.Options, store *weed.Server, vended bool) *rest.Catalog {
	t.Helper()
	o.Name = "prod"
	if vended {
		o.Vending = &rest.Vending{}
	} else {
		o.Stores = stores(t, store)
	}
	c, err := rest.Open(t.Context(), o)
	require.NoError(t, err)
	return c
}

func weedOptions(s *weed.Server, warehouse string) rest.Options {
	return rest.Options{URI: s.REST, Warehouse: warehouse, Secrets: map[string]string{"credential": s.AccessKey + ":" + s.SecretKey}}
}

func nessieOptions(s *nessie.Server, branch string) rest.Options {
	return rest.Options{URI: s.URL, Warehouse: "s3://" + lake + "/wh", Properties: map[string]string{"prefix": branch + "|" + s.Warehouse}}
}

// TestSeaweedFS_Conformance: each test has a table bucket of its own.
func TestSeaweedFS_Conformance(t *testing.T) {
	for name, vended := range map[string]bool{"own keys": false, "vended": true} {
		t.Run(name, func(t *testing.T) {
			free := make([]string, 25)
			for i := range free {
				free[i] = fmt.Sprintf("catalog-%d", i)
			}
			s := weed.Start(t, free...)
			catalogtest.RunWith(t, weedQuirks, func(t *testing.T) catalog.Catalog {
				bucket := free[0]
				free = free[1:]
				return open(t, weedOptions(s, "s3://"+bucket), s, vended)
			})
		})
	}
}

// TestNessie_Conformance: each test has a branch of its own.
func TestNessie_Conformance(t *testing.T) {
	for name, vended := range map[string]bool{"own keys": false, "vended": true} {
		t.Run(name, func(t *testing.T) {
			store := weed.Start(t)
			makeBucket(t, store, lake)
			s := nessie.Start(t, store, lake)
			catalogtest.RunWith(t, nessieQuirks, func(t *testing.T) catalog.Catalog {
				return open(t, nessieOptions(s, s.Branch(t)), store, vended)
			})
		})
	}
}
