package footer

// Physical is how a leaf's values are stored.
type Physical int8

// The physical types.
const (
	Group Physical = iota - 1 // no leaf
	Boolean
	Int32
	Int64
	Int96
	Float
	Double
	ByteArray
	FixedLenByteArray
)

var physicalNames = []string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}

func (p Physical) String() string {
	if p < 0 || int(p) >= len(physicalNames) {
		return "group"
	}
	return physicalNames[p]
}

// Repetition of a schema element.
type Repetition int8

// The repetitions.
const (
	Unrepeated Repetition = iota - 1 // the root
	Required
	Optional
	Repeated
)

// Converted is an old annotation of a type.
type Converted int8

// The old annotations that matter here.
const (
	NoConverted     Converted = -1
	UTF8            Converted = 0
	MapConverted    Converted = 1
	MapKeyValue     Converted = 2
	ListConverted   Converted = 3
	EnumConverted   Converted = 4
	DecimalOld      Converted = 5
	DateConverted   Converted = 6
	TimeMicros      Converted = 8
	TimestampMicros Converted = 10
	Int8Converted   Converted = 15
	Int16Converted  Converted = 16
	Int32Converted  Converted = 17
	Int64Converted  Converted = 18
)

// LogicalKind is an annotation of a type, by its place in the union of the format.
type LogicalKind int8

// The annotations that matter here.
const (
	NoLogical      LogicalKind = 0
	StringLogical  LogicalKind = 1
	MapLogical     LogicalKind = 2
	ListLogical    LogicalKind = 3
	EnumLogical    LogicalKind = 4
	DecimalLogical LogicalKind = 5
	DateLogical    LogicalKind = 6
	TimeLogical    LogicalKind = 7
	Timestamp      LogicalKind = 8
	Integer        LogicalKind = 10
	UUIDLogical    LogicalKind = 14
)

// Unit of a time.
type Unit int8

// The units.
const (
	NoUnit Unit = iota
	Millis
	Micros
	Nanos
)

// Logical is an annotation with its parameters.
type Logical struct {
	Kind             LogicalKind
	Scale, Precision int32 // DecimalLogical
	UTC              bool  // TimeLogical, Timestamp
	Unit             Unit  // TimeLogical, Timestamp
	Bits             int8  // Integer
	Signed           bool  // Integer
}

// Element is a node of a file's schema, which is a list in depth-first order.
type Element struct {
	Physical         Physical
	TypeLength       int32 // FixedLenByteArray, bytes
	Repetition       Repetition
	Name             string
	Children         int32
	Converted        Converted
	Scale, Precision int32 // DecimalOld
	FieldID          int32
	HasID            bool
	Logical          Logical
}

// Statistics of a column chunk. The members min and max, whose order nobody agreed on, are not read.
type Statistics struct {
	Nulls, Distinct    int64 // -1: not there
	Min, Max           []byte
	HasMin, HasMax     bool
	MinExact, MaxExact Exact
}

// Exact says whether a bound is a value of the column.
type Exact int8

// The answers.
const (
	Unsaid Exact = iota
	Yes
	No
)

// EncodingStats counts the pages of one kind.
type EncodingStats struct {
	Page     PageType
	Encoding Encoding
	Count    int32
}

// PageType is the kind of a page.
type PageType int32

// The page types.
const (
	DataPage       PageType = 0
	IndexPage      PageType = 1
	DictionaryPage PageType = 2
	DataPageV2     PageType = 3
)

// Encoding of values or levels.
type Encoding int32

// The encodings.
const (
	Plain             Encoding = 0
	PlainDictionary   Encoding = 2
	RLE               Encoding = 3
	BitPacked         Encoding = 4
	DeltaBinaryPacked Encoding = 5
	DeltaLength       Encoding = 6
	DeltaByteArray    Encoding = 7
	RLEDictionary     Encoding = 8
	ByteStreamSplit   Encoding = 9
)

var encodingNames = map[Encoding]string{
	Plain: "PLAIN", PlainDictionary: "PLAIN_DICTIONARY", RLE: "RLE", BitPacked: "BIT_PACKED", DeltaBinaryPacked: "DELTA_BINARY_PACKED",
	DeltaLength: "DELTA_LENGTH_BYTE_ARRAY", DeltaByteArray: "DELTA_BYTE_ARRAY", RLEDictionary: "RLE_DICTIONARY", ByteStreamSplit: "BYTE_STREAM_SPLIT",
}

func (e Encoding) String() string {
	if name, ok := encodingNames[e]; ok {
		return name
	}
	return "unknown"
}

// Codec is a compression.
type Codec int32

var codecNames = []string{"uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4_hadoop", "zstd", "lz4"}

// String is the name that the table property has for it.
func (c Codec) String() string {
	if c < 0 || int(c) >= len(codecNames) {
		return "unknown"
	}
	return codecNames[c]
}

// Chunk is a column of a row group.
type Chunk struct {
	FilePath     string // of another file that holds it; empty: this one
	Encrypted    bool
	Physical     Physical
	Encodings    []Encoding
	Path         []string // names of its schema elements without the root
	Codec        Codec
	Values       int64 // levels, NULLs included
	Uncompressed int64 // bytes, headers of pages included
	Compressed   int64
	DataOffset   int64
	DictOffset   int64 // 0: none
	Stats        *Statistics
	Pages        []EncodingStats
	BloomOffset  int64 // 0: none
	BloomLength  int64 // header included; 0: it does not say
}

// Start is where the chunk's first page begins.
func (c *Chunk) Start() int64 {
	if c.DictOffset > 0 && c.DictOffset < c.DataOffset {
		return c.DictOffset
	}
	return c.DataOffset
}

// RowGroup is a run of rows.
type RowGroup struct {
	Chunks []Chunk
	Bytes  int64 // uncompressed
	Rows   int64
}

// Pair is one of a file's key-value metadata.
type Pair struct{ Key, Value string }

// File is a whole footer.
type File struct {
	Version   int32
	Schema    []Element
	Rows      int64
	Groups    []RowGroup
	Metadata  []Pair
	CreatedBy string
	Ordered   []bool // by leaf: its statistics are in the order that its type defines; nil: the footer does not say
	Encrypted bool
}
