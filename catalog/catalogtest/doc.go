// Package catalogtest holds what tests of catalogs share: the conformance suite that every implementation of catalog.Catalog runs,
// requests to commit, a wrapper that makes commits go wrong, and a private PostgreSQL server.
package catalogtest
