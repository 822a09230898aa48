package catalog

import (
	"context"
	"fmt"
)

// Change is one table's part of a transaction: requirements and updates as Commit takes them.
type Change struct {
	Ident                 Ident
	Requirements, Updates []byte
}

// Transactor is a catalog that can commit changes of several tables by one request.
type Transactor interface {
	// CommitTransaction applies all changes, or none. Each has to add a snapshot to another table that is there: by these it is seen what has landed, since no answer of the server,
	// not even that it is done, is believed without a look at every table. The answers are those of Commit: nil (all have landed, and the tables as they are then), ErrConflict
	// (none has landed, and not all can), ErrPermanent, and any other error: unknown. A TornError among those says that the server is not atomic.
	CommitTransaction(ctx context.Context, changes []Change) ([]*Table, error)
}

// TornError says that some of a transaction's changes have landed, and the others never can.
type TornError struct {
	Landed, Lost []Ident
	Cause        error
}

// Error implements error.
func (e *TornError) Error() string {
	return fmt.Sprintf("the transaction is torn: the changes of %v have landed, and those of %v never can: the catalog's server does not keep transactions whole (%v)", e.Landed, e.Lost, e.Cause)
}
