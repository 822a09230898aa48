// Package catalogs_test holds REST catalogs of other makers, over an S3 store, to the contract of catalog.Catalog and to that of jobs: SeaweedFS's own and Nessie
// (`make servers`). Without the servers the tests are skipped.
package catalogs_test
