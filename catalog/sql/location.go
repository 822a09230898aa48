package sql

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
)

// DefaultLocation implements catalog.Catalog. It is <warehouse>/<namespace>/<table>, the namespace's parts joined by dots, and with a
// suffix where that directory holds something already: files of a dropped table stay, and may still be read.
func (c *Catalog) DefaultLocation(_ context.Context, id catalog.Ident) (string, error) {
	if err := id.Validate(); err != nil {
		return "", err
	}
	loc := c.plainLocation(id)
	for {
		empty, err := isEmpty(loc)
		if err != nil || empty {
			return loc, err
		}
		loc = c.plainLocation(id) + "-" + randomHex(4)
	}
}

func (c *Catalog) plainLocation(id catalog.Ident) string {
	return storage.Join(c.warehouse, storage.TableDir(id))
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func isEmpty(location string) (bool, error) {
	path, err := storage.LocalPath(location)
	if err != nil {
		return false, err
	}
	d, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer d.Close()
	fi, err := d.Stat()
	if err != nil || !fi.IsDir() {
		return false, err
	}
	_, err = d.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, err
}

// checkLocation refuses locations for new tables that lie outside the warehouse, or so that one table would hold another.
func (c *Catalog) checkLocation(ctx context.Context, id catalog.Ident, location string) error {
	rest, err := storage.Below(c.warehouse, location)
	if err != nil || len(rest) == 0 {
		return fmt.Errorf("table %s: location %q: must be below the catalog's warehouse %s: %w", id, location, c.warehouse, catalog.ErrPermanent)
	}
	others, err := c.db.strings(ctx, `SELECT metadata_location FROM iceberg_tables WHERE catalog_name = $1 AND metadata_location IS NOT NULL`, c.catalogName)
	if err != nil {
		return fmt.Errorf("compare table locations: %w", err)
	}
	for _, o := range others {
		dir := o
		if i := strings.LastIndex(o, "/metadata/"); i > 0 {
			dir = o[:i]
		}
		_, inside := storage.Below(dir, location)
		_, around := storage.Below(location, o)
		if inside == nil || around == nil {
			return fmt.Errorf("table %s: location %q: another table's files are there (%s): %w", id, location, dir, catalog.ErrPermanent)
		}
	}
	return nil
}
