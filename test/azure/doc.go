// Package azure_test holds the client of Azure Blob Storage to its suite on Azurite (`make test-azure`). Without it the test is skipped.
package azure_test
