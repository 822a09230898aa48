package scheduler

import (
	"path"
	"strings"

	"github.com/signet-io/signet/catalog/storage"
)

// tidy removes directories that a failed or a replaced attempt has left empty: those above its prefix; in the warehouse also that of the data files and
// that of a table which was not created. Elsewhere the place of the data files is somebody's own, and stays.
func (s *Server) tidy(e *catalogEntry, location, prefix string) {
	home := e.root
	if e.catalog != nil {
		home = s.cfg.Catalogs[e.name].Warehouse
	}
	if err := storage.RemoveEmpty(tidyBelow(home, location), prefix); err != nil {
		s.log.Debug("empty directories stay", "prefix", prefix, "error", err)
	}
}

// tidyBelow is the directory that stays: <warehouse>/.. of <table>/data, but never one above the warehouse.
func tidyBelow(warehouse, location string) string {
	base := location
	for range 2 {
		if rest, err := storage.Below(warehouse, base); err != nil || len(rest) == 0 {
			break
		}
		base = parentOf(base)
	}
	return base
}

// parentOf keeps the scheme: path.Dir would make one slash of three.
func parentOf(location string) string {
	location = strings.TrimRight(location, "/")
	return strings.TrimSuffix(strings.TrimSuffix(location, path.Base(location)), "/")
}
