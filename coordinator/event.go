package coordinator

// Event is something that happened, or that a caller asks for.
type Event interface{ kind() eventKind }

type eventKind int

const (
	evBegin eventKind = iota
	evAccept
	evStart
	evSkip
	evSeal
	evLanded
	evFound
	evConflict
	evRefused
	evUnknown
	evDead
	evCancel
	evFail
	evRestart

	eventCount
)

var eventNames = [eventCount]string{"Begin", "Accept", "Start", "Skip", "Seal", "Landed", "Found", "Conflict", "Refused", "Unknown", "Dead", "Cancel", "Fail", "Restart"}

func (k eventKind) String() string { return eventNames[k] }

type (
	// Begin says how many tasks must be accepted before the job may commit.
	Begin struct {
		Tasks     int
		TableUUID string // the only table that the job may commit to; empty: not known yet
	}

	// Accept offers the checked task manifest of one attempt (see CheckManifest).
	Accept struct {
		Task    int
		Attempt string
		Epoch   uint64 // under which the attempt was journalled
		Digest  string // hex
		Totals  Totals
		Paths   []string
	}

	// Start lets the sink build the commit: the scheduler root is due.
	Start struct{}

	// Skip ends the job without a commit, because the accepted manifests hold no file.
	Skip struct{ Version string }

	// Seal asks to let one attempt through to its commit point.
	Seal struct{ Attempt Attempt }

	// Landed: the commit point confirmed the attempt.
	Landed struct {
		Seq               int
		Version, Location string
	}

	// Found: the job's marker, or the attempt's version, was found in the table. Seq 0: found outside any attempt.
	Found struct {
		Seq               int
		Version, Location string
	}

	// Conflict: the attempt definitely did not land, and a new one may.
	Conflict struct {
		Seq    int
		Reason string
	}

	// Refused: the attempt was definitely refused, and a new one would be too.
	Refused struct {
		Seq    int
		Reason string
	}

	// Unknown: the attempt was sent and has no definite answer.
	Unknown struct {
		Seq    int
		Reason string
	}

	// Dead: the attempt can never land.
	Dead struct {
		Seq    int
		Reason string
	}

	// Cancel asks to end the job without a commit.
	Cancel struct{ Reason string }

	// Fail ends the job because something before the commit point went wrong.
	Fail struct{ Reason string }

	// Restart: a new scheduler incarnation took over.
	Restart struct{ Epoch uint64 }
)

func (Begin) kind() eventKind    { return evBegin }
func (Accept) kind() eventKind   { return evAccept }
func (Start) kind() eventKind    { return evStart }
func (Skip) kind() eventKind     { return evSkip }
func (Seal) kind() eventKind     { return evSeal }
func (Landed) kind() eventKind   { return evLanded }
func (Found) kind() eventKind    { return evFound }
func (Conflict) kind() eventKind { return evConflict }
func (Refused) kind() eventKind  { return evRefused }
func (Unknown) kind() eventKind  { return evUnknown }
func (Dead) kind() eventKind     { return evDead }
func (Cancel) kind() eventKind   { return evCancel }
func (Fail) kind() eventKind     { return evFail }
func (Restart) kind() eventKind  { return evRestart }
