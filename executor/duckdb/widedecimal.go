package duckdb

import (
	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// noWideDecimal refuses decimals that DuckDB cannot hold, at every level.
func noWideDecimal(f *planv1.PinnedFile, n *parquetNode, path string) error {
	for _, c := range n.children {
		if c.wideDecimal() {
			return userErrorf("write the file again with DECIMAL of at most 38 digits, or with text, in this column",
				"%s: column %q is a DECIMAL of more than 38 digits, which cannot be read exactly", displayName(f), path+c.name)
		}
		if err := noWideDecimal(f, c, path+c.name+"."); err != nil {
			return err
		}
	}
	return nil
}
