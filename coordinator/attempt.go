package coordinator

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
)

// AttemptKind says which commit point an attempt goes to.
type AttemptKind string

// The kinds of commit points.
const (
	KindCatalog  AttemptKind = "catalog"  // a catalog request of requirements and updates
	KindStorage  AttemptKind = "storage"  // an object created if absent
	KindExternal AttemptKind = "external" // a system that only the sink reaches
)

// MaxBody caps the object that a storage attempt holds itself, in bytes: it is journalled whole. A larger one, up to MaxApart, lies in a file of its own, and
// the attempt has its digest.
const (
	MaxBody  = 16 << 20
	MaxApart = 1 << 30
)

// Attempt is one try at the commit point, with everything that sending the identical request again needs.
type Attempt struct {
	Seq            int         `json:"seq"`   // given by the machine, from 1
	Epoch          uint64      `json:"epoch"` // incarnation that asks
	Kind           AttemptKind `json:"kind"`
	SnapshotID     int64       `json:"snapshot_id,omitempty"`
	Version        string      `json:"version,omitempty"` // snapshot id or log version as text
	Parent         *int64      `json:"parent,omitempty"`  // snapshot that it builds on
	ParentVersion  string      `json:"parent_version,omitempty"`
	SequenceNumber int64       `json:"sequence_number,omitempty"` // 0: the table's format has none
	// Follows is the location of the only metadata that the request can follow, where there are no sequence numbers, or it relies on more than they say.
	Follows   string   `json:"follows,omitempty"`
	TableUUID string   `json:"table_uuid,omitempty"`
	Creates   bool     `json:"creates,omitempty"` // the request creates the table
	Location  string   `json:"location,omitempty"`
	Markers   []string `json:"markers,omitempty"`
	// Group names the group whose units the attempt carries; empty: one job's own.
	Group string `json:"group,omitempty"`

	Requirements json.RawMessage `json:"requirements,omitempty"` // catalog
	Updates      json.RawMessage `json:"updates,omitempty"`      // catalog
	URI          string          `json:"uri,omitempty"`          // storage
	Body         []byte          `json:"body,omitempty"`         // storage, up to MaxBody
	Apart        *Apart          `json:"apart,omitempty"`        // storage, in place of a larger body
	Digest       []byte          `json:"digest,omitempty"`       // external: of the request, as the sink names it
}

// Apart is a body that lies in a file beside the journal, which was synced before the seal.
type Apart struct {
	File   string `json:"file"` // its name, without a directory
	Size   int64  `json:"size"` // bytes
	SHA256 []byte `json:"sha256"`
}

func (a *Apart) validate() error {
	switch {
	case a.File == "" || strings.ContainsAny(a.File, `/\`):
		return fmt.Errorf("whose body lies in a file named %q", a.File)
	case a.Size <= 0 || a.Size > MaxApart:
		return fmt.Errorf("with a body of %d bytes, limit %d", a.Size, MaxApart)
	case len(a.SHA256) != sha256.Size:
		return fmt.Errorf("whose body has a digest of %d bytes", len(a.SHA256))
	}
	return nil
}

// validate checks that the attempt could be sent again from what it holds.
func (a *Attempt) validate() error {
	bad := func(what string) error { return fmt.Errorf("%w: attempt %s", ErrInvalid, what) }
	switch {
	case len(a.Markers) == 0:
		return bad("without a marker could not be found again")
	case a.Version == "":
		return bad("without a version")
	}
	switch a.Kind {
	case KindCatalog:
		switch {
		case len(a.Requirements) == 0 || len(a.Updates) == 0:
			return bad("without its request")
		case a.TableUUID == "":
			return bad("without a table UUID")
		case a.SequenceNumber <= 0 && a.Follows == "" && !a.Creates:
			return bad("without a sequence number, or the metadata that it follows, could never be told dead")
		}
	case KindStorage:
		switch {
		case a.URI == "":
			return bad("without a URI")
		case a.Apart != nil && len(a.Body) > 0:
			return bad("with two bodies")
		case a.Apart != nil:
			if err := a.Apart.validate(); err != nil {
				return bad(err.Error())
			}
		case len(a.Body) == 0:
			return bad("without a body")
		case len(a.Body) > MaxBody:
			return bad(fmt.Sprintf("with a body of %d bytes, limit %d", len(a.Body), MaxBody))
		}
	case KindExternal:
	default:
		return bad(fmt.Sprintf("of kind %q", a.Kind))
	}
	return nil
}

// OutcomeKind is how a sealed attempt ended.
type OutcomeKind int

// The outcomes. Landed, Found and Dead are definite after any history; Conflict and Refused only when no send of the attempt ended unknown.
const (
	OutcomeLanded   OutcomeKind = iota + 1 // the request was confirmed
	OutcomeFound                           // the marker or the version is in the table
	OutcomeConflict                        // did not land and cannot: build anew
	OutcomeRefused                         // definitely refused: building anew does not help
	OutcomeUnknown                         // sent, no definite answer
	OutcomeDead                            // can never land
)

var outcomeNames = [...]string{"none", "landed", "found", "conflict", "refused", "unknown", "dead"}

func (k OutcomeKind) String() string {
	if k < 0 || int(k) >= len(outcomeNames) {
		return fmt.Sprintf("OutcomeKind(%d)", int(k))
	}
	return outcomeNames[k]
}

// Outcome is the end of one attempt as the broker saw it.
type Outcome struct {
	Kind     OutcomeKind
	Version  string // landed, found
	Location string // landed, found
	Reason   string // the others
	// Versions are found ones by marker, where an attempt carries the units of several jobs: not all have to be in one snapshot. Nil: Version is everybody's.
	Versions map[string]string
}

// Event gives the outcome of attempt seq to the machine.
func (o Outcome) Event(seq int) (Event, error) {
	switch o.Kind {
	case OutcomeLanded:
		return Landed{Seq: seq, Version: o.Version, Location: o.Location}, nil
	case OutcomeFound:
		return Found{Seq: seq, Version: o.Version, Location: o.Location}, nil
	case OutcomeConflict:
		return Conflict{Seq: seq, Reason: o.Reason}, nil
	case OutcomeRefused:
		return Refused{Seq: seq, Reason: o.Reason}, nil
	case OutcomeUnknown:
		return Unknown{Seq: seq, Reason: o.Reason}, nil
	case OutcomeDead:
		return Dead{Seq: seq, Reason: o.Reason}, nil
	default:
		return nil, fmt.Errorf("%w: outcome %d", ErrInvalid, o.Kind)
	}
}
