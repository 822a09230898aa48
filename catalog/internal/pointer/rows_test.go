package pointer

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
)

// memory holds rows for tests.
type memory struct {
	mu        sync.Mutex
	rows      map[string]Row
	warehouse string
	down      error // of every read
	swapErr   error // what Swap answers instead of doing anything
}

func (m *memory) Get(_ context.Context, id catalog.Ident) (Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.rows[id.String()]
	if !ok && m.down == nil {
		return r, fmt.Errorf("table %s: %w", id, catalog.ErrNotFound)
	}
	return r, m.down
}

func (m *memory) Swap(_ context.Context, id catalog.Ident, base Row, next Next) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.swapErr != nil {
		return false, m.swapErr
	}
	if m.rows[id.String()] != base {
		return false, nil
	}
	m.rows[id.String()] = after(base, next.Location)
	return true, nil
}

func (m *memory) Insert(_ context.Context, id catalog.Ident, next Next) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.rows[id.String()]; taken {
		return false, nil
	}
	m.rows[id.String()] = after(Row{}, next.Location)
	return true, nil
}

// touch changes the row and leaves the pointer where it is.
func (m *memory) touch(id catalog.Ident) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows[id.String()] = after(m.rows[id.String()], m.rows[id.String()].Location)
}

func (m *memory) drop(id catalog.Ident) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.rows, id.String())
}

func after(base Row, location string) Row {
	n, _ := strconv.Atoi(base.Version)
	return Row{Location: location, Version: strconv.Itoa(n + 1)}
}

func (m *memory) CheckNew(context.Context, catalog.Ident) error { return nil }

func (m *memory) CheckLocation(context.Context, catalog.Ident, string) error { return nil }

func (m *memory) Place(_ context.Context, id catalog.Ident) (string, error) {
	return storage.Join(m.warehouse, storage.TableDir(id)), nil
}
