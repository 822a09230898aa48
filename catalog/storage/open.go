package storage

// Open returns the store for a location, which must be an absolute local path or a file:// URI. It does not have to exist yet.
func Open(location string) (Store, error) { return openLocal(location) }
