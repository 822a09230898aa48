package catalogtest

// Quirks are what a catalog cannot do, or does in another way, without losing or mixing up anything.
type Quirks struct {
	// Names.
	StepNames    bool // refuses the names . and ..
	NoSlashes    bool // refuses names with what a URL's path cannot hold without doubt: slashes, backslashes, % and control characters
	FlatDots     bool // holds a dot to be between parts of a namespace, so that no part has one; knows a namespace once one below it is known
	DotsAlias    bool // with FlatDots: takes a part with a dot for several parts, instead of refusing it
	PlainNames   bool // refuses some names that have more than small letters, digits, _ and -, or fails
	ParentsFirst bool // refuses a namespace whose parent is not there
	LooseLists   bool // lists the tables of a namespace that is not there: none
	Implied      bool // makes a namespace with its first table
	OneLevel     bool // has namespaces of one part
	LowerCase    bool // holds names in lower case only, and no control characters

	// Files and places.
	OwnFiles       bool // names metadata files, and leaves those of attempts that failed, as its server likes
	OddFiles       bool // with OwnFiles: what it says of a table's metadata is no file's text, or its names tell no order; no compression
	FreePlaces     bool // leaves it to its server where tables may lie, within the warehouse
	OwnPlaces      bool // gives each table a place that no other ever had
	NoChosenPlaces bool // makes no table at a place that somebody else has chosen
	Purges         bool // removes a dropped table's files

	// Commits.
	NoFollows   bool // holds no request to one metadata file: nothing is written to version 1
	OnlyV2      bool // makes tables of format version 2 only
	CurrentOnly bool // keeps the current snapshot only: a request that landed before others is not known again by its snapshot, and a reference may lead to nothing
	EmptySchema bool // leaves an empty schema in tables that are made by their first commit
	Unsure      bool // says that somebody else was faster before that can be seen: only the identical request settles it
}
